"""Arrays as text: a .npy file in base64, a quarter of what the same numbers are when JSON spells them out.

Nothing is unpickled, and nothing is allocated on the word of a header.
"""

import base64
import io
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fcer.errors import InputError
from fcer.runtime.npy_header import read_npy_header

__all__ = ["from_text", "to_text"]


def to_text(array: NDArray[Any]) -> str:
    """The array as a .npy file, in base64."""
    file = io.BytesIO()
    npy.write_array(file, array, allow_pickle=False)
    return base64.b64encode(file.getbuffer()).decode("ascii")


def from_text(text: str, name: str) -> NDArray[Any]:
    """The numbers of a base64 .npy file, read-only; `name` says in errors which file is meant."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise InputError(
            f"{name}: this is not base64, or it was cut short; encode the whole .npy file, without line breaks"
        ) from None
    file = io.BytesIO(data)
    try:
        shape, fortran_order, dtype = read_npy_header(file)
    except ValueError:
        raise InputError(f"{name}: this is not a .npy file of numbers; write one with numpy.save") from None
    if dtype.kind not in "fiu":
        raise InputError(f"{name}: the .npy file holds {dtype}, not numbers; save float32 or float16")
    promised, found = math.prod(shape) * dtype.itemsize, len(data) - file.tell()
    if min(shape, default=0) < 0 or promised != found:
        raise InputError(
            f"{name}: the .npy file's header promises {dtype} of shape {shape}, but {found} bytes of numbers follow; "
            "send the whole file"
        )
    values = np.frombuffer(data, dtype, offset=file.tell())
    try:
        return values.reshape(shape, order="F" if fortran_order else "C")
    except (ValueError, TypeError):  # of nothing, in numbers or dimensions that no array has
        raise InputError(
            f"{name}: the .npy file's shape {str(shape)[:60]} is not that of an array; send days"
        ) from None

"""Arrays of an HDF5 file whose numbers lie in that file: every HDF5 file that anybody hands us passes here.

HDF5 lets a file name others that are to be read in its place (links, external storage, virtual datasets, of which
missing parts read as zeros), and lets it declare far more numbers than it has bytes for.
"""

import math
from typing import Any

import h5py

from fcer.runtime.files import could_hold

__all__ = ["NotInFile", "own_array"]


class NotInFile(ValueError):
    """An array that is not to be read; the message says why and follows the array's name in a sentence."""


def own_array(file: h5py.File, name: str) -> Any:
    """The dataset `name` at the top of `file`, or a NotInFile; nothing outside the file is opened on the way.

    It holds numbers or text, in any number of dimensions, and the file has bytes enough for them.
    """
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise NotInFile("is a link" if name in file.keys() else "is not there")  # noqa: SIM118 (`in file` follows links)
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise NotInFile("is a group" if isinstance(dataset, h5py.Group) else "is no array")
    if dataset.external or dataset.is_virtual:
        raise NotInFile("has its numbers in other files")
    if dataset.shape is None:
        raise NotInFile("is empty")
    if dataset.dtype.kind not in "biufSUM" and not h5py.check_string_dtype(dataset.dtype):
        raise NotInFile(f"holds {str(dataset.dtype)[:60]}, neither numbers nor text")
    declared = math.prod(dataset.shape) * dataset.dtype.itemsize
    # what a damaged or crafted file says of its own storage counts only up to the bytes that it has
    stored = min(dataset.id.get_storage_size(), file.id.get_filesize())
    if not could_hold(stored, declared):
        raise NotInFile(f"should have {declared} bytes, but {stored} are stored")
    return dataset

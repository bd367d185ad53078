"""The header of a .npy array from anywhere."""

import tokenize
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

__all__ = ["read_npy_header"]

_LONGEST = 1000
"""Bytes. A header of plain numbers has 118; Python's parser is not to meet anything long."""


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is stored by columns, and type; a ValueError where this is no .npy array."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        return readers[npy.read_magic(stream)](stream, max_header_size=_LONGEST)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        raise ValueError("this is not a .npy array") from None

"""16-bit codes of numbers from 0 to 1: what uncertainties are ranked by where they are too many to sort.

A code keeps 11 bits of a number's mantissa, in each of the 31 octaves below 1: codes are in the order of the numbers,
every half-precision number has one of its own, and others share one with those within 1/4096 of them.
"""

import numpy as np

from fcer.core.arrays import FloatArray, IntArray

__all__ = ["CODE_VALUES", "N_CODES", "codes_of", "rounded_codes"]

_OCTAVES = 31
_MANTISSA_BITS = 11
_DROPPED_BITS = 23 - _MANTISSA_BITS  # a single-precision number has 23
_FIRST = (127 - _OCTAVES) << _MANTISSA_BITS  # 127 is the exponent of 1; code 1 stands for 2^-31

N_CODES = (_OCTAVES << _MANTISSA_BITS) + 2
"""Zero, 2^-31, ..., and 1 as the largest."""


def _single_codes(bits: IntArray) -> IntArray:
    """Codes of single-precision numbers from 0 on, given as their bits; rounded to the nearest."""
    rounded = (bits + np.uint32(1 << (_DROPPED_BITS - 1))) >> np.uint32(_DROPPED_BITS)
    above_zero = np.maximum(rounded, np.uint32(_FIRST - 1)) - np.uint32(_FIRST - 1)
    return np.asarray(above_zero, dtype=np.uint16)


def codes_of(values: FloatArray) -> IntArray:
    """The code of each of some numbers from 0 to 1, of any precision.

    >>> codes_of(np.array([0, 2**-40, 2**-31, 0.5, 1])).tolist()
    [0, 0, 1, 61441, 63489]
    """
    if values.dtype == np.float16:
        return np.asarray(_HALF_CODES[values.view(np.uint16)])
    single = np.abs(values, dtype=np.float32)  # -0 is 0
    return _single_codes(single.view(np.uint32))


def rounded_codes(values: FloatArray, codes: IntArray) -> IntArray:
    """The codes among some numbers' that do not stand for just that number; never any of half precision."""
    if values.dtype == np.float16:
        return np.empty(0, dtype=np.uint16)
    return np.unique(codes[values != CODE_VALUES[codes]])


def _code_values() -> FloatArray:
    bits = (np.arange(1, N_CODES, dtype=np.uint32) + np.uint32(_FIRST - 1)) << np.uint32(_DROPPED_BITS)
    return np.concatenate([[0.0], bits.view(np.float32).astype(np.float64)])


CODE_VALUES: FloatArray = _code_values()
"""The number that each code stands for: those of half precision, and the middle of what shares a code."""

_HALF_CODES: IntArray = _single_codes(
    np.abs(np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)).view(np.uint32)
)

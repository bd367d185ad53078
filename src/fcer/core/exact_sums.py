"""Sums that come out the same to the last bit in whatever order and groups their terms are added.

A term becomes two whole numbers, so that adding never rounds; what is cut off lies below 2^-58.
"""

import numpy as np

from fcer.core.arrays import FloatArray, IntArray

__all__ = ["add_whole", "sum_of", "whole_terms"]

_COARSE_BITS, _FINE_BITS = 14, 44  # each half leaves room for some 2^19 terms of up to 2^29, then carry


def whole_terms(terms: FloatArray | IntArray) -> IntArray:
    """The terms, none negative, as whole numbers to be added: (2, ...)."""
    scaled = np.ldexp(terms, _COARSE_BITS)
    coarse = np.floor(scaled)
    fine = np.floor(np.ldexp(scaled - coarse, _FINE_BITS))
    return np.stack([coarse, fine]).astype(np.int64)


def add_whole(total: IntArray, more: IntArray) -> None:
    """Add whole terms to others in place, what the fine half has too much carried over: any number of times."""
    total += more
    total[0] += total[1] >> _FINE_BITS
    total[1] &= (1 << _FINE_BITS) - 1


def sum_of(whole: IntArray) -> FloatArray:
    """What whole terms (2, ...) add up to, rounded once.

    >>> terms = np.array([0.1, 0.2, 0.3])
    >>> sum_of(whole_terms(terms).sum(axis=1)) == sum_of(whole_terms(terms[::-1]).sum(axis=1))
    np.True_
    """
    scale = 1 << (_COARSE_BITS + _FINE_BITS)
    coarse, fine = whole.reshape(2, -1).tolist()
    sums = [((high << _FINE_BITS) + low) / scale for high, low in zip(coarse, fine, strict=True)]
    return np.array(sums, dtype=np.float64).reshape(whole.shape[1:])

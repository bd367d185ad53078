"""Pixels of each fire by level of a score: what ranking metrics are drawn anew from.

There are too many pixels to weigh one by one for every draw of fires, so those of one level tie. Levels follow the
values: they are as narrow as the values are close to 0 or 1. Each draw's counts are sums over fires, and so grow
neither with fires nor with images.
"""

from collections.abc import Iterator
from typing import Self

import numpy as np

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.codes import CODE_VALUES

__all__ = ["LEVELS", "LevelCounts", "level_of_code"]

_PENDING = 1 << 20
_ROWS_AT_ONCE = 64
_SINGLE = 1 << 24
"""Whole numbers below this are exact in single precision, and so are sums that stay below it."""


def _levels() -> IntArray:
    """64 levels to an octave of p below a half and of 1 - p above it, 16 where p is below 2^-12."""
    tiny, small = (
        np.ldexp(1 + np.arange(n) / n, -np.arange(*exponents)[:, None]).ravel()
        for n, exponents in ((16, (13, 32)), (64, (2, 13)))
    )
    edges = np.unique(np.concatenate([[0, 0.5, 1], tiny, small, 1 - small]))
    # near 1 there are fewer codes than levels
    return np.unique(np.searchsorted(edges, CODE_VALUES, side="right"), return_inverse=True)[1].astype(np.uint16)


level_of_code: IntArray = _levels()
"""The level of each code (see `fcer.core.codes`)."""

LEVELS = int(level_of_code[-1]) + 1


class LevelCounts:
    """Counts of pixels by fire, level and kind, and what each of some weightings of fires (rows, fires) makes of them.

    Without weights the counts are kept by fire, until they are merged into others that have weights.
    """

    def __init__(self, n_kinds: int, weights: IntArray | None = None) -> None:
        self._n_kinds, self._weights = n_kinds, weights
        self._pending: list[tuple[IntArray, IntArray, IntArray]] = []
        self._n_pending = 0
        n_rows = 0 if weights is None else len(weights)
        self._sums = np.zeros((n_rows, LEVELS * n_kinds))

    def update(self, fire_of_image: IntArray, image: IntArray, codes: IntArray, kind: IntArray) -> None:
        """Count pixels, each with the image that it is in, whose fires are given by number."""
        fires, place = np.unique(fire_of_image, return_inverse=True)
        cells = place[image] * self._sums.shape[1] + level_of_code[codes].astype(np.intp) * self._n_kinds + kind
        counts = np.bincount(cells, minlength=fires.size * self._sums.shape[1])
        some = np.flatnonzero(counts)
        self._add(fires[some // self._sums.shape[1]], some % self._sums.shape[1], counts[some])

    def merge(self, other: Self) -> None:
        """Add what another counted."""
        for counted in other._pending:
            self._add(*counted)

    def rows(self) -> Iterator[FloatArray]:
        """Of a few weightings at a time, from first to last: pixels (rows, levels, kinds)."""
        self._weigh()
        for start in range(0, len(self._sums), _ROWS_AT_ONCE):
            yield self._sums[start : start + _ROWS_AT_ONCE].reshape(-1, LEVELS, self._n_kinds)

    def _add(self, fires: IntArray, cells: IntArray, counts: IntArray) -> None:
        self._pending.append((fires.astype(np.uint32), cells.astype(np.uint32), counts.astype(np.uint32)))
        self._n_pending += fires.size
        if self._weights is not None and self._n_pending > _PENDING:
            self._weigh()

    def _weigh(self) -> None:
        """Add what is pending as often as each weighting has its fire."""
        if not self._pending or self._weights is None:
            return
        fires, cells, counts = (np.concatenate(column) for column in zip(*self._pending, strict=True))
        self._pending.clear()
        self._n_pending = 0
        some, row = np.unique(fires, return_inverse=True)
        filled, column = np.unique(cells, return_inverse=True)
        table = np.bincount(row * filled.size + column, weights=counts, minlength=some.size * filled.size)
        table = table.reshape(some.size, filled.size)
        weights = self._weights[:, some]
        # in floating point, which is exact for counts and far faster to multiply, the more so in single precision
        exact = np.float32 if table.sum(axis=0).max() * weights.max() < _SINGLE else np.float64
        self._sums[:, filled] += weights.astype(exact) @ table.astype(exact)

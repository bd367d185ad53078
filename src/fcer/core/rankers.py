"""Two ways to rank any number of pixels: by the values themselves, sorted; or by 16-bit codes, counted.

Both are told of the same pixels, piece by piece, and give the same counts of the same regions; codes take memory that
does not grow with the number of pixels, and say how far from the truth their rounding may lead.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, Self

import numpy as np

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.codes import CODE_VALUES, N_CODES, codes_of, rounded_codes
from fcer.core.rank_bounds import RankBound, rank_bound
from fcer.core.rank_counts import N_CELLS, ClassCounts, RankCounts, counts_by_level, nested_counts

__all__ = ["CodedRanks", "Ranks", "SortedRanks", "ValueCounts"]

_MANY_PAIRS = 2.0**61  # of positives and negatives: more than twice as many are no whole number of 64 bits


class ValueCounts(NamedTuple):
    """Wrong (or burnt) and all pixels at each of some ascending values."""

    values: FloatArray
    positives: IntArray
    pixels: IntArray


class Ranks(Protocol):
    """Pixels of nested regions: those of `n_rings` rings, and of what is beyond the last but one of them."""

    def __init__(self, n_rings: int) -> None: ...

    def update(self, scores: FloatArray, cell: IntArray, ring: IntArray) -> None:
        """Add pixels, each with its kind (see `cells_of`) and ring."""

    def update_rest(self, scores: FloatArray) -> None:
        """Add pixels of the last ring that were rightly not predicted as fire: most of all that there are."""

    def merge(self, other: Self) -> None:
        """Add what another was told, in any order."""

    def regions(self) -> Iterator[ClassCounts]:
        """Counts of the first ring, of the first two, and so on."""

    def value_counts(self) -> ValueCounts:
        """All pixels by score."""

    def bound(self) -> RankBound:
        """How far metrics of any of the regions may be from exact ones."""


class SortedRanks:
    """Every value is kept, and sorted in the end."""

    def __init__(self, n_rings: int) -> None:
        self._n_rings = n_rings
        self._pixels: list[tuple[FloatArray, IntArray, IntArray]] = []
        self._rest: list[FloatArray] = []

    def update(self, scores: FloatArray, cell: IntArray, ring: IntArray) -> None:
        """See `Ranks`."""
        self._pixels.append((_widened(scores), cell, ring))

    def update_rest(self, scores: FloatArray) -> None:
        """See `Ranks`."""
        self._rest.append(_widened(scores))

    def merge(self, other: Self) -> None:
        """See `Ranks`."""
        self._pixels += other._pixels
        self._rest += other._rest

    def regions(self) -> Iterator[ClassCounts]:
        """See `Ranks`."""
        return nested_counts(*self._listed(), self._n_rings, self._sorted_rest())

    def value_counts(self) -> ValueCounts:
        """See `Ranks`."""
        scores, cell, _ = self._listed()
        rest = self._sorted_rest()
        values, pixels = np.unique(np.concatenate([scores, rest]), return_counts=True)
        wrong = np.sort(scores[cell % 2 == 1])  # found faster in order
        positives = np.bincount(np.searchsorted(values, wrong), minlength=values.size)
        return ValueCounts(values.astype(np.float64), positives, pixels)

    def bound(self) -> RankBound:
        """See `Ranks`."""
        return RankBound()

    def _listed(self) -> tuple[FloatArray, IntArray, IntArray]:
        if not self._pixels:
            return np.empty(0, np.float32), np.empty(0, np.uint8), np.empty(0, np.uint8)
        if len(self._pixels) > 1:
            scores, cell, ring = (np.concatenate(column) for column in zip(*self._pixels, strict=True))
            self._pixels = [(scores, cell, ring)]
        return self._pixels[0]

    def _sorted_rest(self) -> FloatArray:
        """In one array, which for thousands of images is the largest that there is."""
        rest = np.concatenate([np.empty(0, np.float32), *self._rest])
        self._rest.clear()
        rest.sort()
        self._rest.append(rest)
        return rest


class CodedRanks:
    """Pixels are counted by the code of their score."""

    def __init__(self, n_rings: int) -> None:
        self._n_rings = n_rings
        self._cells: list[tuple[IntArray, IntArray]] = []
        self._histogram: IntArray | None = None  # made when something is merged: a shard's pixels fill little of it
        self._rest = np.zeros(N_CODES, dtype=np.int64)
        self._rounded = np.zeros(N_CODES, dtype=bool)

    def update(self, scores: FloatArray, cell: IntArray, ring: IntArray) -> None:
        """See `Ranks`."""
        row = ring.astype(np.int32) * N_CELLS + cell
        self._cells.append(np.unique(row * N_CODES + self._code(scores), return_counts=True))

    def update_rest(self, scores: FloatArray) -> None:
        """See `Ranks`."""
        self._rest += np.bincount(self._code(scores), minlength=N_CODES)

    def merge(self, other: Self) -> None:
        """See `Ranks`."""
        if self._histogram is None:
            self._histogram = np.zeros(self._n_rings * N_CELLS * N_CODES, dtype=np.int64)
        for cells, counts in self._cells + other._cells:
            self._histogram[cells] += counts
        self._cells.clear()
        if other._histogram is not None:
            self._histogram += other._histogram
        self._rest += other._rest
        self._rounded |= other._rounded

    def regions(self) -> Iterator[ClassCounts]:
        """See `Ranks`."""
        for cells in self._by_region():
            some = np.flatnonzero(cells[1] + cells[3])  # of all codes only those that hold a wrong pixel are needed
            pairs = float(cells[1::2].sum()) * float(cells[::2].sum())
            counted = cells.astype(np.float64) if pairs > _MANY_PAIRS else cells
            yield ClassCounts(*(_only(counts_by_level(counted[k + 1], counted[k]), some) for k in (0, 2)))

    def value_counts(self) -> ValueCounts:
        """See `Ranks`."""
        *_, cells = self._by_region()
        pixels = cells.sum(axis=0)
        some = np.flatnonzero(pixels)
        return ValueCounts(CODE_VALUES[some], (cells[1] + cells[3])[some], pixels[some])

    def bound(self) -> RankBound:
        """See `Ranks`."""
        widest = RankBound()
        for cells, counts in zip(self._by_region(), self.regions(), strict=True):
            widest = widest.or_wider(rank_bound(counts, self._rounded[np.flatnonzero(cells[1] + cells[3])]))
        return widest

    def _code(self, scores: FloatArray) -> IntArray:
        codes = codes_of(scores)
        self._rounded[rounded_codes(scores, codes)] = True
        return codes

    def _by_region(self) -> Iterator[IntArray]:
        """Pixels of each region by kind and code (cells, codes)."""
        self.merge(CodedRanks(self._n_rings))  # which counts what was only listed
        assert self._histogram is not None
        region = np.zeros((N_CELLS, N_CODES), dtype=np.int64)
        for k, ring in enumerate(self._histogram.reshape(-1, N_CELLS, N_CODES)):
            region = region + ring
            if k == self._n_rings - 1:
                region[0] += self._rest
            yield region


def _widened(scores: FloatArray) -> FloatArray:
    """Half precision as single, which keeps ranks and sorts faster."""
    return scores.astype(np.float32) if scores.dtype == np.float16 else scores


def _only(counts: RankCounts, some: IntArray) -> RankCounts:
    return counts._replace(**{name: getattr(counts, name)[some] for name in RankCounts._fields[:4]})

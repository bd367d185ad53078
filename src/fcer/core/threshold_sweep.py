"""How the ranking of errors hangs on the threshold that makes them: all thresholds from one count of pixels."""

from typing import NamedTuple, Self

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.codes import N_CODES, codes_of
from fcer.core.rank_counts import ClassCounts, counts_by_level
from fcer.core.ranking import auroc, auroc_within

__all__ = ["ThresholdCounts", "ThresholdCurve", "exceeded", "thresholds_around"]

_EVEN = tuple(k / 10 for k in range(1, 10))


def thresholds_around(own: float) -> tuple[float, ...]:
    """A tenth to nine tenths, and the one that an evaluation uses."""
    return tuple(sorted({*_EVEN, own}))


def exceeded(prob: FloatArray, thresholds: tuple[float, ...]) -> IntArray:
    """How many of the rising thresholds each probability is above, compared in the precision of the probabilities."""
    return np.searchsorted(np.array(thresholds, prob.dtype), prob).astype(np.uint8)


class ThresholdCurve(NamedTuple):
    """One value per threshold; ranks are of 16-bit codes, NaN where no pair is there to be ranked."""

    threshold: FloatArray
    auroc: FloatArray
    auroc_within: FloatArray
    false_alarm_share: FloatArray
    n_errors: IntArray


class ThresholdCounts:
    """One method's pixels of a region by code of uncertainty, by how many thresholds they exceed, and by what burnt."""

    def __init__(self, thresholds: tuple[float, ...]) -> None:
        self._thresholds = thresholds
        self._listed: list[tuple[IntArray, IntArray]] = []
        self._counts: IntArray | None = None  # made when something is merged: a shard's pixels fill little of it

    def update(self, unc: FloatArray, burnt: BoolArray, above: IntArray) -> None:
        """Add pixels; `above` is what `exceeded` says of the reference's probability."""
        kind = 2 * above.astype(np.int32) + burnt
        self._listed.append(np.unique(kind * N_CODES + codes_of(unc), return_counts=True))

    def merge(self, other: Self) -> None:
        """Add what another was told."""
        if self._counts is None:
            self._counts = np.zeros(2 * (len(self._thresholds) + 1) * N_CODES, dtype=np.int64)
        for cells, counts in self._listed + other._listed:
            self._counts[cells] += counts
        self._listed.clear()
        if other._counts is not None:
            self._counts += other._counts

    def curve(self) -> ThresholdCurve:
        """At each threshold, errors are what burnt at or below it and what did not above it."""
        self.merge(type(self)(self._thresholds))
        assert self._counts is not None
        pixels = self._counts.reshape(-1, 2, N_CODES)
        pixels = pixels[:, :, pixels.any(axis=(0, 1))]
        below = pixels.cumsum(axis=0)
        rows = []
        for spared, burnt in below[:-1]:
            alarms, hits = below[-1] - (spared, burnt)
            counts = ClassCounts(counts_by_level(burnt, spared), counts_by_level(alarms, hits))
            pooled = counts.pooled
            n_errors = int(pooled.n_positives)
            share = int(alarms.sum()) / n_errors if n_errors else np.nan
            rows.append((float(auroc(pooled)), float(auroc_within(counts)), share, n_errors))
        return ThresholdCurve(np.array(self._thresholds), *(np.array(column) for column in zip(*rows, strict=True)))

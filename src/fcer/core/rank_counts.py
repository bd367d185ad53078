"""Counts behind every ranking metric: positives and negatives below, and tied with, each positive's score.

Counts of rings add up to counts of regions, so each pixel is sorted once, inside its ring, whatever the
number of regions; and rings of several pieces of data merge by joining and sorting them. Counts are whole
numbers: ties are exact.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray

__all__ = ["RankCounts", "RingScores", "nested_counts", "place", "placed_counts", "rings_of"]


class RingScores(NamedTuple):
    """The scores of one ring's pixels, ascending, and those of the positives among them, ascending."""

    scores: FloatArray
    positives: FloatArray

    @classmethod
    def sort(cls, scores: FloatArray, positives: FloatArray) -> "RingScores":
        """A ring from scores in any order; half precision is widened, which keeps ranks and sorts faster."""
        if scores.dtype == np.float16:
            scores, positives = scores.astype(np.float32), positives.astype(np.float32)
        return cls(np.sort(scores), np.sort(positives))


class RankCounts(NamedTuple):
    """A region's positives and negatives, below and tied with each of some ascending scores (..., scores).

    The leading axes, where there are any, tell regions apart.
    """

    positives_below: IntArray
    positives_tied: IntArray
    negatives_below: IntArray
    negatives_tied: IntArray
    n_positives: IntArray
    n_negatives: IntArray

    @property
    def both_classes(self) -> BoolArray:
        """Whether there is anything to rank."""
        return (self.n_positives > 0) & (self.n_negatives > 0)


def nested_counts(rings: Sequence[RingScores]) -> Iterator[RankCounts]:
    """Counts of the region made of the first ring, of the first two, and so on, at all positives' scores."""
    thresholds = np.unique(np.concatenate([ring.positives for ring in rings]))
    below = tied = positives_below = positives_tied = np.zeros(thresholds.size, dtype=np.int64)
    n = n_positives = np.int64(0)
    for scores, positives in rings:
        # positives are pixels too: negatives are what is left of all pixels
        ring_below, ring_tied = _below_and_tied(scores, thresholds)
        ring_positives_below, ring_positives_tied = _below_and_tied(positives, thresholds)
        below, tied = below + ring_below, tied + ring_tied
        positives_below = positives_below + ring_positives_below
        positives_tied = positives_tied + ring_positives_tied
        n, n_positives = n + scores.size, n_positives + positives.size
        yield RankCounts(
            positives_below,
            positives_tied,
            below - positives_below,
            tied - positives_tied,
            np.asarray(n_positives),
            np.asarray(n - n_positives),
        )


def rings_of(scores: FloatArray, positive: BoolArray, ring: IntArray, n_rings: int) -> list[RingScores]:
    """Pixels sorted ring by ring; those of ring `n_rings` and beyond are left out."""
    order = np.argsort(ring, kind="stable")
    edges = np.searchsorted(ring[order], np.arange(n_rings + 1))
    scores, positive = scores[order], positive[order]
    return [
        RingScores.sort(scores[start:stop], scores[start:stop][positive[start:stop]]) for start, stop in pairwise(edges)
    ]


def placed_counts(scores: FloatArray, positive: BoolArray, ring: IntArray, n_rings: int) -> RankCounts:
    """What `nested_counts` gives, for all regions (regions, scores) in a few operations.

    For one image's few hundred pixels, where the number of operations is what takes time.
    """
    thresholds = np.unique(scores[positive])
    n_places = 2 * thresholds.size + 1
    places = place(scores, thresholds) + n_places * ring.astype(np.intp)
    positives, negatives = (
        np.bincount(places[some], minlength=n_places * n_rings)[: n_places * n_rings]
        .reshape(n_rings, n_places)
        .cumsum(axis=0)
        for some in (positive, ~positive)
    )
    return RankCounts(
        positives.cumsum(axis=1)[:, :-1:2],
        positives[:, 1::2],
        negatives.cumsum(axis=1)[:, :-1:2],
        negatives[:, 1::2],
        positives.sum(axis=1),
        negatives.sum(axis=1),
    )


def place(scores: FloatArray, thresholds: FloatArray) -> IntArray:
    """Where each score lies among ascending, distinct thresholds: 2i between the i-1st and ith, 2i+1 on the ith."""
    between = np.searchsorted(thresholds, scores)
    on = np.append(thresholds, np.nan)[between] == scores
    return np.asarray(2 * between + on)


def _below_and_tied(ascending: FloatArray, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    below = np.searchsorted(ascending, thresholds, side="left")
    return below, np.searchsorted(ascending, thresholds, side="right") - below

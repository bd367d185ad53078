"""Counts behind every ranking metric: positives and negatives below, and tied with, each positive's score.

Counts of rings add up to counts of regions, and those of predicted classes to those of all pixels, so each pixel is
placed once, whatever the number of regions. Counts are whole numbers: ties are exact.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray

__all__ = ["ClassCounts", "RankCounts", "cells_of", "counts_by_level", "nested_counts", "place"]

N_CELLS = 4
"""Kinds of pixels: predicted as fire or not, right or wrong."""


def cells_of(predicted: BoolArray, wrong: BoolArray) -> IntArray:
    """The kind of each pixel: 0 right and 1 wrong where no fire was predicted, 2 right and 3 wrong where it was."""
    return 2 * predicted.astype(np.uint8) + wrong


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

    def plus(self, other: "RankCounts") -> "RankCounts":
        """Of the pixels of both, which were counted at the same scores."""
        return RankCounts(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))


class ClassCounts(NamedTuple):
    """A region's wrong and right pixels by what was predicted, both counted at the scores of all wrong ones."""

    missed: RankCounts
    """Where no fire was predicted: the wrong ones burnt."""
    alarms: RankCounts
    """Where fire was predicted: the wrong ones did not burn."""

    @property
    def pooled(self) -> RankCounts:
        """Whatever was predicted."""
        return self.missed.plus(self.alarms)


def counts_by_level(positives: Any, negatives: Any) -> RankCounts:
    """Counts at each of some rising levels of a score, from how many pixels (..., levels) are at each."""
    return RankCounts(
        positives.cumsum(axis=-1) - positives,
        positives,
        negatives.cumsum(axis=-1) - negatives,
        negatives,
        np.asarray(positives.sum(axis=-1)),
        np.asarray(negatives.sum(axis=-1)),
    )


def nested_counts(
    scores: FloatArray, cell: IntArray, ring: IntArray, n_rings: int, rest: FloatArray
) -> Iterator[ClassCounts]:
    """Counts of the regions made of the first ring, of the first two, and so on.

    `rest`, ascending, are more pixels of cell 0 in the last ring: most of all that there are.
    """
    thresholds = np.unique(scores[cell % 2 == 1])
    kind = ring.astype(np.uint16) * N_CELLS + cell
    order = np.argsort(kind, kind="stable")
    scores, edges = scores[order], np.searchsorted(kind[order], np.arange(n_rings * N_CELLS + 1))
    n_places = 2 * thresholds.size + 1
    placed = np.zeros((N_CELLS, n_places), dtype=np.int64)
    for k in range(n_rings):
        for c in range(N_CELLS):
            some = slice(*edges[k * N_CELLS + c : k * N_CELLS + c + 2])
            in_order = np.sort(scores[some])  # which are found faster
            placed[c] += np.bincount(place(in_order, thresholds), minlength=n_places)
        below, tied, n = placed.cumsum(axis=1)[:, :-1:2], placed[:, 1::2].copy(), placed.sum(axis=1)
        if k == n_rings - 1 and rest.size:
            rest_below = np.searchsorted(rest, thresholds, side="left")
            below[0] += rest_below
            tied[0] += np.searchsorted(rest, thresholds, side="right") - rest_below
            n[0] += rest.size
        yield ClassCounts(
            *(
                RankCounts(below[wrong], tied[wrong], below[right], tied[right], n[wrong, ...], n[right, ...])
                for right, wrong in ((0, 1), (2, 3))
            )
        )


def place(scores: FloatArray | IntArray, thresholds: FloatArray | IntArray) -> IntArray:
    """Where each score lies among ascending, distinct thresholds: 2i between the i-1st and ith, 2i+1 on the ith."""
    between = np.searchsorted(thresholds, scores)
    on = between < thresholds.size
    on[on] = thresholds[between[on]] == scores[on]
    return np.asarray(2 * between + on)

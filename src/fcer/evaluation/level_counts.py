"""Pixels of each fire by level of a score: what ranking metrics are drawn anew from, shard by shard.

There are too many pixels to weigh one by one for every draw of fires, so those of one level tie. A shard counts the
pixels of its fires; each draw's counts are sums over fires, and so grow neither with fires nor with images.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, IntArray
from fcer.core.codes import CODE_VALUES, N_CODES
from fcer.core.histogram import histogram_counts
from fcer.core.rank_counts import RankCounts

__all__ = ["LEVELS", "PROB_LEVELS", "UNC_LEVELS", "FireLevels", "LevelCounts", "LevelDraws"]

LEVELS = 2048

PROB_LEVELS: IntArray = np.minimum(CODE_VALUES * LEVELS, LEVELS - 1).astype(np.uint16)
"""The level of each code of a probability: levels are of equal width."""

UNC_LEVELS: IntArray = (np.arange(N_CODES) // 32).astype(np.uint16)
"""The level of each code of an uncertainty, 64 to an octave: some methods' uncertainties are all small."""

_DRAWS_AT_ONCE = 64


class FireLevels(NamedTuple):
    """Positives, and all pixels, of some fires (fires, levels)."""

    fire: IntArray
    positives: IntArray
    pixels: IntArray


class LevelCounts:
    """Counts the pixels of a shard's images, whose fires are given by number."""

    def __init__(self, fire_of_image: IntArray) -> None:
        self._fire, self._place = np.unique(fire_of_image, return_inverse=True)
        self._counts = np.zeros((2, self._fire.size * LEVELS), dtype=np.int64)

    def add(self, image: IntArray, level: IntArray, positive: BoolArray) -> None:
        """Count some pixels, each by its image of the shard."""
        bins = level + self._place[image] * LEVELS
        for counts, some in zip(self._counts, (bins[positive], bins), strict=True):
            counts += np.bincount(some, minlength=counts.size)

    def result(self) -> FireLevels:
        """What was counted."""
        positives, pixels = self._counts.reshape(2, -1, LEVELS).astype(np.int32)
        return FireLevels(self._fire, positives, pixels)


class LevelDraws:
    """What each draw of fires (draws, fires) counts at each level."""

    def __init__(self, draws: IntArray) -> None:
        self._draws = draws
        self._positives, self._pixels = np.zeros((2, len(draws), LEVELS))

    def add(self, levels: FireLevels) -> None:
        """Count some fires as often as each draw has them."""
        # in floating point, which is exact for counts and far faster to multiply
        weights = self._draws[:, levels.fire].astype(np.float64)
        self._positives += weights @ levels.positives
        self._pixels += weights @ levels.pixels

    def counts(self) -> Iterator[RankCounts]:
        """Counts of a few draws at a time (draws, levels), from first to last."""
        for start in range(0, len(self._draws), _DRAWS_AT_ONCE):
            some = slice(start, start + _DRAWS_AT_ONCE)
            yield histogram_counts(self._positives[some].astype(np.int64), self._pixels[some].astype(np.int64))

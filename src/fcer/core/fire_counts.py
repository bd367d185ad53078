"""Pixels near fire, counted by fire and by level of the logit: what recalibrations are fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import CLIP
from fcer.core.recalibration import Recalibration

__all__ = ["FireCounts"]

_EDGE = float(logit(1 - CLIP))
_LEVELS = 4096


@dataclass
class FireCounts:
    """Pixels near fire, counted by fire and by level of the logit: all that fitting needs, however many there are.

    Levels are fine enough (0.008 of logit) that a level's middle stands for its pixels; what is fitted is applied to
    the probabilities themselves.
    """

    pixels: IntArray
    burnt: IntArray

    @classmethod
    def empty(cls, n_fires: int) -> "FireCounts":
        """Nothing counted yet."""
        return cls(*np.zeros((2, n_fires, _LEVELS), dtype=np.int64))

    @classmethod
    def join(cls, parts: Sequence["FireCounts"]) -> "FireCounts":
        """The fires of all parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("pixels", "burnt")))

    @property
    def prob(self) -> FloatArray:
        """The probability that each level stands for."""
        return np.asarray(expit((np.arange(_LEVELS) + 0.5) / _LEVELS * 2 * _EDGE - _EDGE))

    def add(self, fire: int, prob: ArrayLike, burnt: BoolArray) -> None:
        """Count pixels of a fire."""
        p = np.clip(np.asarray(prob, dtype=np.float64), CLIP, 1 - CLIP)
        level = np.minimum(((logit(p) + _EDGE) / (2 * _EDGE) * _LEVELS).astype(np.intp), _LEVELS - 1)
        self.pixels[fire] += np.bincount(level, minlength=_LEVELS)
        self.burnt[fire] += np.bincount(level[burnt], minlength=_LEVELS)

    def take(self, fires: IntArray | BoolArray) -> "FireCounts":
        """Some of the fires."""
        return FireCounts(self.pixels[fires], self.burnt[fires])

    def nll(self, recalibration: Recalibration) -> FloatArray:
        """Negative log-likelihood of each fire's pixels, summed."""
        p = np.clip(recalibration.apply(self.prob), CLIP, 1 - CLIP)
        return np.asarray(-(self.burnt @ np.log(p) + (self.pixels - self.burnt) @ np.log1p(-p)))

"""Reliability by isotonic regression (CORP; Dimitriadis, Gneiting and Jordan 2021): no bins to choose.

The fire rate is taken to rise with the probability, and is what pools adjacent violators of that. Brier's score is
then miscalibration - discrimination + uncertainty, none of them negative.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, isotonic_regression

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.codes import codes_of
from fcer.core.levels import level_of_code
from fcer.core.rankers import ValueCounts

__all__ = ["BrierParts", "CorpCurve", "brier_parts", "corp_curve"]

_BAND_DRAWS = 200


class BrierParts(NamedTuple):
    """Brier score = miscalibration - discrimination + uncertainty."""

    miscalibration: float
    discrimination: float
    uncertainty: float


class CorpCurve(NamedTuple):
    """One row for each stretch of probabilities that has one fire rate; a calibrated forecast's lies in the band.

    The band holds 95 % of the fire rates that would be found if each pixel burnt with its own probability, and by
    itself: pixels of one fire do not, so that a curve outside a narrow band may still be calibrated.
    """

    lower: FloatArray
    upper: FloatArray
    n_pixels: IntArray
    mean_prob: FloatArray
    fire_rate: FloatArray
    band_low: FloatArray
    band_high: FloatArray


def brier_parts(counts: ValueCounts, brier: float) -> BrierParts:
    """The parts of a Brier score, from burnt and all pixels by probability; NaN for no pixels."""
    if not counts.values.size:
        return BrierParts(*[float("nan")] * 3)
    n, burnt = int(counts.pixels.sum()), int(counts.positives.sum())
    rate = _isotonic(counts.positives, counts.pixels).x
    recalibrated = float(np.sum(counts.positives * (1 - rate) ** 2 + (counts.pixels - counts.positives) * rate**2)) / n
    uncertainty = burnt / n * (1 - burnt / n)
    return BrierParts(brier - recalibrated, uncertainty - recalibrated, uncertainty)


def corp_curve(counts: ValueCounts, rng: np.random.Generator | None) -> CorpCurve:
    """The curve, and its band where there is something to draw it with."""
    if not counts.values.size:
        return CorpCurve(*np.empty((7, 0)))
    found = _isotonic(counts.positives, counts.pixels)
    starts = found.blocks[:-1]
    pixels, prob = (np.add.reduceat(column, starts) for column in (counts.pixels, counts.pixels * counts.values))
    mean_prob = prob / pixels
    band = np.full((2, starts.size), np.nan) if rng is None else _band(counts, mean_prob, rng)
    last = counts.values[found.blocks[1:] - 1]
    return CorpCurve(counts.values[starts], last, pixels, mean_prob, found.x[starts], *band)


def _band(counts: ValueCounts, at: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The middle 95 % of the fire rates that calibrated pixels show, at levels of probability, and from there `at`."""
    level = level_of_code[codes_of(counts.values)]
    starts = np.flatnonzero(np.diff(level, prepend=-1))
    pixels, prob = (np.add.reduceat(column, starts) for column in (counts.pixels, counts.pixels * counts.values))
    prob = prob / pixels
    drawn = rng.binomial(pixels, np.minimum(prob, 1), size=(_BAND_DRAWS, starts.size))
    rates = np.array([_isotonic(burnt, pixels).x for burnt in drawn])
    return np.array([np.interp(at, prob, edge) for edge in np.quantile(rates, [0.025, 0.975], axis=0)])


def _isotonic(burnt: IntArray, pixels: IntArray) -> OptimizeResult:
    return isotonic_regression(burnt / pixels, weights=pixels.astype(np.float64))

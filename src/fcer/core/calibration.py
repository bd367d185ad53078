"""How far predicted fire probabilities are from what burnt."""

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py, xlogy

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.errors import UndefinedMetricWarning

__all__ = [
    "CLIP",
    "ECE_BINS",
    "Binning",
    "ReliabilityCurve",
    "base_losses",
    "brier_loss",
    "curve_of_bins",
    "ece_loss",
    "log_losses",
    "mass_reliability",
    "nll_loss",
    "reliability_curve",
    "skill_of",
    "width_bin",
]

CLIP = 1e-7
"""Probabilities are kept this far from 0 and 1 before a logarithm is taken."""

ECE_BINS = 15
"""Bins of the calibration error, unless others are asked for."""

Binning = Literal["width", "mass"]
"""Bins of equal width in probability, or of (nearly) equal numbers of pixels."""


class ReliabilityCurve(NamedTuple):
    """One row per bin that holds pixels, by rising probability."""

    lower: FloatArray
    upper: FloatArray
    n_pixels: IntArray
    mean_prob: FloatArray
    fire_rate: FloatArray

    @property
    def error(self) -> float:
        """Mean distance between probability and fire rate, by pixels; NaN for none."""
        if not self.n_pixels.size:
            return float("nan")
        return float(np.average(np.abs(self.mean_prob - self.fire_rate), weights=self.n_pixels))


def brier_loss(fire: ArrayLike, prob: ArrayLike) -> float:
    """Mean squared difference between probability and outcome.

    >>> brier_loss([1, 0], [0.5, 0.0])
    0.125
    """
    burnt, p = _flat(fire, prob)
    if not p.size:
        return _undefined("the Brier score")
    return float(np.mean((p - burnt) ** 2))


def nll_loss(fire: ArrayLike, prob: ArrayLike) -> float:
    """Mean negative log-likelihood of the outcomes, probabilities clipped to [1e-7, 1 - 1e-7].

    >>> round(nll_loss([1, 0], [0.5, 0.0]), 6)
    0.346574
    """
    burnt, p = _flat(fire, prob)
    if not p.size:
        return _undefined("the negative log-likelihood")
    return float(np.mean(log_losses(burnt, p)))


def log_losses(fire: BoolArray, prob: FloatArray) -> FloatArray:
    """Negative log-likelihood of each pixel."""
    likelihood = 1.0 - prob
    likelihood[fire] = prob[fire]  # fire is rare: this beats choosing pixel by pixel
    np.clip(likelihood, CLIP, 1 - CLIP, out=likelihood)
    return np.asarray(-np.log(likelihood))


def ece_loss(fire: ArrayLike, prob: ArrayLike, n_bins: int = ECE_BINS, binning: Binning = "width") -> float:
    """Expected calibration error: mean distance between probability and fire rate over bins, by pixels.

    >>> round(ece_loss([1, 0, 0, 0], [0.9, 0.1, 0.1, 0.1]), 6)
    0.1
    """
    curve = reliability_curve(fire, prob, n_bins, binning)
    return curve.error if curve.n_pixels.size else _undefined("the expected calibration error")


def reliability_curve(
    fire: ArrayLike, prob: ArrayLike, n_bins: int = ECE_BINS, binning: Binning = "width"
) -> ReliabilityCurve:
    """Mean probability and fire rate by bin of probability; empty bins are left out.

    Bins of equal mass never part equal probabilities, so the curve does not depend on the pixels' order.

    >>> reliability_curve([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.8], n_bins=2).fire_rate
    array([0., 1.])
    """
    burnt, p = _flat(fire, prob)
    if binning == "mass":
        values, inverse = np.unique(p, return_inverse=True)
        n_burnt = np.bincount(inverse[burnt], minlength=values.size)
        return mass_reliability(values, n_burnt, np.bincount(inverse), n_bins)
    edges = np.linspace(0, 1, n_bins + 1)
    return curve_of_bins(edges, width_bin(p, n_bins), p, burnt, np.ones(p.size, dtype=np.int64))


def mass_reliability(values: FloatArray, burnt: IntArray, pixels: IntArray, n_bins: int = ECE_BINS) -> ReliabilityCurve:
    """In bins of equal mass, from the burnt and all pixels at each of some ascending probabilities."""
    last = np.cumsum(pixels)
    cuts = np.arange(1, n_bins) * last[-1] // n_bins if last.size else np.empty(0)
    edges = np.unique(np.concatenate([[0.0], values[np.searchsorted(last, cuts, side="right")], [1.0]]))
    bins = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
    return curve_of_bins(edges, bins, values, burnt, pixels)


def curve_of_bins(
    edges: FloatArray, bins: IntArray, prob: FloatArray, burnt: IntArray | BoolArray, pixels: IntArray
) -> ReliabilityCurve:
    """The bins that hold pixels, from probabilities each of which some pixels, and some burnt ones, have."""
    count, prob_sum, fire_sum = (
        np.bincount(bins, weights=weights, minlength=edges.size - 1) for weights in (pixels, pixels * prob, burnt)
    )
    some = np.flatnonzero(count)
    n = count[some]
    return ReliabilityCurve(edges[some], edges[some + 1], n.astype(np.int64), prob_sum[some] / n, fire_sum[some] / n)


def skill_of(loss: FloatArray, base_loss: FloatArray) -> FloatArray:
    """The share of the base rate's own loss that is spared; NaN where that is 0, since one class alone is there."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base_loss > 0, 1 - loss / base_loss, np.nan)


def base_losses(burnt: IntArray | FloatArray, pixels: IntArray | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Brier score and negative log-likelihood of a constant forecast of the share of pixels that burnt."""
    with np.errstate(invalid="ignore"):
        f = burnt / pixels
    return f * (1 - f), -(xlogy(f, f) + xlog1py(1 - f, -f))


def width_bin(prob: FloatArray, n_bins: int) -> IntArray:
    """The bin of each probability among `n_bins` of equal width; 1 belongs to the last."""
    return np.minimum((prob * n_bins).astype(np.intp), n_bins - 1)


def _flat(fire: ArrayLike, prob: ArrayLike) -> tuple[BoolArray, FloatArray]:
    return np.asarray(fire, dtype=bool).ravel(), np.asarray(prob, dtype=np.float64).ravel()


def _undefined(metric: str) -> float:
    warnings.warn(f"{metric} of no pixels is undefined and is NaN", UndefinedMetricWarning, stacklevel=3)
    return float("nan")

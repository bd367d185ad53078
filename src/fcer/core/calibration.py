"""How far predicted fire probabilities are from what burnt."""

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.errors import UndefinedMetricWarning

__all__ = [
    "CLIP",
    "ECE_BINS",
    "Binning",
    "ReliabilityCurve",
    "brier_loss",
    "ece_loss",
    "log_losses",
    "nll_loss",
    "reliability_curve",
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
    if not curve.n_pixels.size:
        return _undefined("the expected calibration error")
    return float(np.average(np.abs(curve.mean_prob - curve.fire_rate), weights=curve.n_pixels))


def reliability_curve(
    fire: ArrayLike, prob: ArrayLike, n_bins: int = ECE_BINS, binning: Binning = "width"
) -> ReliabilityCurve:
    """Mean probability and fire rate by bin of probability; empty bins are left out.

    Bins of equal mass never part equal probabilities, so the curve does not depend on the pixels' order.

    >>> reliability_curve([1, 0, 0, 1], [0.9, 0.1, 0.2, 0.8], n_bins=2).fire_rate
    array([0., 1.])
    """
    burnt, p = _flat(fire, prob)
    if binning == "width":
        edges = np.linspace(0, 1, n_bins + 1)
        bins = width_bin(p, n_bins)
    else:
        cuts = np.arange(1, n_bins) * p.size // n_bins
        edges = np.unique(np.concatenate([[0.0], np.sort(p)[cuts] if p.size else [], [1.0]]))
        bins = np.minimum(np.searchsorted(edges, p, side="right") - 1, edges.size - 2)
    count = np.bincount(bins, minlength=edges.size - 1)
    some = np.flatnonzero(count)
    mean_prob = np.bincount(bins, weights=p, minlength=count.size)[some] / count[some]
    fire_rate = np.bincount(bins[burnt], minlength=count.size)[some] / count[some]
    return ReliabilityCurve(edges[some], edges[some + 1], count[some], mean_prob, fire_rate)


def width_bin(prob: FloatArray, n_bins: int) -> IntArray:
    """The bin of each probability among `n_bins` of equal width; 1 belongs to the last."""
    return np.minimum((prob * n_bins).astype(np.intp), n_bins - 1)


def _flat(fire: ArrayLike, prob: ArrayLike) -> tuple[BoolArray, FloatArray]:
    return np.asarray(fire, dtype=bool).ravel(), np.asarray(prob, dtype=np.float64).ravel()


def _undefined(metric: str) -> float:
    warnings.warn(f"{metric} of no pixels is undefined and is NaN", UndefinedMetricWarning, stacklevel=3)
    return float("nan")

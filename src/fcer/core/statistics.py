"""Paired comparison of two methods, and correction for making many of them."""

import math
import warnings
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from fcer.core.arrays import FloatArray
from fcer.errors import UndefinedMetricWarning

__all__ = ["WilcoxonResult", "holm_correction", "wilcoxon_test"]


_EXACT_PAIRS = 50  # up to which scipy may count instead of approximate


class WilcoxonResult(NamedTuple):
    """A paired signed-rank test; `p` is one-sided for `a` greater than `b`."""

    n: int
    n_nonzero: int
    w_plus: float
    w_minus: float
    p: float
    p_two_sided: float
    rank_biserial: float
    median_delta: float


def wilcoxon_test(a: ArrayLike, b: ArrayLike) -> WilcoxonResult:
    """Wilcoxon's signed-rank test of paired scores, zero differences dropped.

    Pairs with a NaN are left out. The rank-biserial correlation counts non-zero differences only, like the
    ranks it is made of. Where no difference is left, nothing speaks for `a`: p is 1 and the correlation NaN.

    >>> result = wilcoxon_test([0.9, 0.8, 0.7, 0.5], [0.5, 0.6, 0.6, 0.5])
    >>> result.n, result.n_nonzero, result.w_plus, result.w_minus, result.p, result.rank_biserial
    (4, 3, 6.0, 0.0, 0.125, 1.0)
    """
    delta = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    delta = delta[~np.isnan(delta)]
    nan = math.nan
    if not delta.size:
        _warn("a paired test of no pairs is undefined and is NaN")
        return WilcoxonResult(0, 0, 0.0, 0.0, nan, nan, nan, nan)
    nonzero = delta[delta != 0]
    median = float(np.median(delta))
    if not nonzero.size:
        _warn("the rank-biserial correlation of equal pairs is undefined and is NaN")
        return WilcoxonResult(delta.size, 0, 0.0, 0.0, 1.0, 1.0, nan, median)
    ranks = stats.rankdata(np.abs(nonzero))
    w_plus, w_minus = float(ranks[nonzero > 0].sum()), float(ranks[nonzero < 0].sum())
    return WilcoxonResult(
        delta.size,
        nonzero.size,
        w_plus,
        w_minus,
        *_p_values(nonzero, ranks, w_plus),
        (w_plus - w_minus) / (w_plus + w_minus),
        median,
    )


def _p_values(nonzero: FloatArray, ranks: FloatArray, w_plus: float) -> tuple[float, float]:
    """One-sided for greater, and two-sided; of many pairs by the normal approximation, as scipy does but at once."""
    n = nonzero.size
    _, ties = np.unique(ranks, return_counts=True)
    if n <= _EXACT_PAIRS:
        signed = np.copysign(ranks, nonzero)
        return _counted(n, w_plus, None if ties.size == n else tuple(sorted(signed.tolist())))
    variance = (n * (n + 1) * (2 * n + 1) - 0.5 * float(np.sum(ties * (ties * ties - 1)))) / 24
    z = (w_plus - n * (n + 1) * 0.25) / math.sqrt(variance)
    return float(special.ndtr(-z)), 2 * float(special.ndtr(-abs(z)))


@lru_cache(maxsize=4096)
def _counted(n: int, w_plus: float, tied: tuple[float, ...] | None) -> tuple[float, float]:
    """By scipy, whose time goes into anything but the count: few fires meet the same ranks again and again.

    Without ties the sum of the positive ranks decides, so that any ranks of that sum will do.
    """
    signed = list(tied or ())
    if tied is None:
        for rank in range(n, 0, -1):
            positive = rank <= w_plus
            w_plus -= rank * positive
            signed.append(rank if positive else -rank)
    greater, two_sided = (stats.wilcoxon(signed, alternative=side).pvalue for side in ("greater", "two-sided"))
    return float(greater), float(two_sided)


def holm_correction(p_values: ArrayLike) -> FloatArray:
    """Holm's step-down adjustment of a family of p values; NaN stays NaN and does not count.

    >>> holm_correction([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    steps = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def _warn(message: str) -> None:
    warnings.warn(message, UndefinedMetricWarning, stacklevel=3)

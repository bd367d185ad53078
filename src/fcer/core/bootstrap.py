"""Bootstrap intervals that draw whole fires: days of one fire are not independent.

A draw is a number of times that each fire counts, so that every statistic here is a weighted one and nothing
is computed anew from pixels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.rank_counts import RankCounts
from fcer.core.ranking import auprc, auroc

__all__ = [
    "bootstrap_average_precision",
    "bootstrap_median",
    "bootstrap_ranking",
    "bootstrap_ratio",
    "draw_fires",
    "percentile_interval",
]

_AT_ONCE = 1 << 22
"""Numbers in a block of draws: all draws of many thousand fires would fill the memory."""


def draw_fires(n_fires: int, n_draws: int, rng: np.random.Generator) -> IntArray:
    """How often each fire is drawn (draws, fires): as many as there are, with replacement."""
    draws = np.zeros((n_draws, n_fires), dtype=np.min_scalar_type(n_fires))
    for some in _blocks(draws) if n_fires else ():
        draws[some] = rng.multinomial(n_fires, np.full(n_fires, 1 / n_fires), size=len(draws[some]))
    return draws


def percentile_interval(draws: FloatArray, confidence: float = 0.95) -> tuple[float, float]:
    """The middle `confidence` of the draws that are defined; NaN where none is."""
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_ratio(
    numerator: FloatArray | IntArray, denominator: FloatArray | IntArray, fire: IntArray, draws: IntArray
) -> FloatArray:
    """For each draw, a ratio of sums over units (a mean, with a denominator of ones); NaN for 0/0.

    `fire` says whose each unit is. Units with a NaN numerator are left out of both sums.
    """
    known = ~np.isnan(numerator)
    n_fires = draws.shape[1]
    tops = np.bincount(fire[known], weights=numerator[known], minlength=n_fires)
    bottoms = np.bincount(fire[known], weights=denominator[known], minlength=n_fires)
    ratios = np.empty(len(draws))
    for some in _blocks(draws):
        weights = draws[some].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios[some] = (weights @ tops) / (weights @ bottoms)
    return ratios


def bootstrap_median(values: FloatArray, fire: IntArray, draws: IntArray) -> FloatArray:
    """For each draw, the median of the drawn fires' values; NaN values are left out."""
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    if not order.size:
        return np.full(len(draws), np.nan)
    ascending = np.append(values[order], np.nan)
    medians = np.empty(len(draws))
    for some in _blocks(draws, order.size):
        last = np.cumsum(draws[some][:, fire[order]], axis=1, dtype=np.int64)
        total = last[:, -1]
        # the two middle places are one and the same for an odd number of values
        lower = (last <= ((total - 1) // 2)[:, None]).sum(axis=1)
        upper = (last <= (total // 2)[:, None]).sum(axis=1)
        medians[some] = np.where(total > 0, (ascending[lower] + ascending[upper]) / 2, np.nan)
    return medians


def bootstrap_average_precision(burnt: IntArray, pixels: IntArray, draws: IntArray) -> FloatArray:
    """AP for each draw, from each fire's burnt and all pixels at rising levels of probability (fires, levels).

    For a whole year's pixels, which are too many to weigh one by one for every draw: pixels of one level tie.
    """
    # in floating point, which is exact for counts and far faster to multiply
    weights = draws.astype(np.float64)
    hits, above = ((weights @ counts)[:, ::-1].cumsum(axis=1) for counts in (burnt, pixels))
    precision = hits / np.maximum(above, 1)
    with np.errstate(invalid="ignore"):
        ap = np.sum(np.diff(hits, axis=1, prepend=0) * precision, axis=1) / hits[:, -1]
    return np.where((hits[:, -1] > 0) & (hits[:, -1] < above[:, -1]), ap, np.nan)


def bootstrap_ranking(
    score: FloatArray, positive: BoolArray, fire: IntArray, draws: IntArray
) -> tuple[FloatArray, FloatArray]:
    """AUROC and AUPRC of pooled pixels for each draw, exact in ties; NaN where a draw has one class only.

    `fire` says whose each pixel is. Pixels are sorted once; a draw changes how often each counts.
    """
    thresholds = np.unique(score[positive])
    positives = _Cumulative.sort(score[positive], fire[positive], thresholds)
    negatives = _Cumulative.sort(score[~positive], fire[~positive], thresholds)
    auroc_draws, auprc_draws = np.empty((2, len(draws)))
    for i, weights in enumerate(draws):
        positives_below, positives_tied, n_positives = positives.weigh(weights)
        negatives_below, negatives_tied, n_negatives = negatives.weigh(weights)
        counts = RankCounts(positives_below, positives_tied, negatives_below, negatives_tied, n_positives, n_negatives)
        auroc_draws[i], auprc_draws[i] = auroc(counts), auprc(counts)
    return auroc_draws, auprc_draws


class _Cumulative(NamedTuple):
    """The fires of one class of pixels, by rising score, and where thresholds lie among them."""

    fire: IntArray
    start: IntArray
    stop: IntArray

    @classmethod
    def sort(cls, score: FloatArray, fire: IntArray, thresholds: FloatArray) -> "_Cumulative":
        order = np.argsort(score)
        ascending = score[order]
        start, stop = (np.searchsorted(ascending, thresholds, side) for side in ("left", "right"))
        return cls(fire[order], start, stop)

    def weigh(self, weights: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Pixels below each threshold, tied with it, and in all, each as often as its fire was drawn."""
        cumulative = np.zeros(self.fire.size + 1, dtype=np.int64)
        np.cumsum(weights[self.fire], dtype=np.int64, out=cumulative[1:])
        below = cumulative[self.start]
        return below, cumulative[self.stop] - below, np.asarray(cumulative[-1])


def _blocks(draws: IntArray, width: int = 0) -> Iterator[slice]:
    """Slices of draws, such that a row of fires, or of `width` numbers, for each of them fits in memory at ease."""
    step = max(1, _AT_ONCE // max(draws.shape[1], width, 1))
    return (slice(start, start + step) for start in range(0, len(draws), step))

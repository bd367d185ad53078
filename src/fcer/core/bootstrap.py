"""Bootstrap intervals that draw whole fires: days of one fire are not independent.

A draw is a number of times that each fire counts, so that every statistic here is a weighted one and nothing
is computed anew from pixels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.rank_counts import RankCounts
from fcer.core.ranking import auprc, auroc

__all__ = [
    "Replicates",
    "Resamples",
    "bootstrap_median",
    "bootstrap_ranking",
    "bootstrap_ratio",
    "draw_fires",
    "percentile_interval",
    "widened_interval",
]

_LEFT_OUT = 200
"""Parts of the fires at most that are left out in turn; all there are, one by one, if they are no more."""

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


def widened_interval(
    draws: FloatArray, freedom: int, *, acceleration: float = 0.0, confidence: float = 0.95
) -> tuple[float, float]:
    """As the middle of the draws, but as wide as few units ask for; NaN where no draw is defined.

    A bootstrap of n units has (n - 1)/n of the variance, and is read as if that were known: with few units the middle
    95 % is too narrow. Percentiles are taken farther out, where Student's t with `freedom` (n - 1) degrees has them
    (Hesterberg 2015), and moved by the acceleration (Efron 1987). BCa alone widens nothing: of 7 fires it holds the
    truth in 86 %, percentiles in 87 %, this in 93 % of cases.
    """
    defined = draws[~np.isnan(draws)]
    if not defined.size or freedom < 1:
        return float("nan"), float("nan")
    ends = []
    for side in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = np.sqrt((freedom + 1) / freedom) * special.stdtrit(freedom, side)
        stretch = 1 - acceleration * z
        # beyond its pole the correction says no more than that the end is the outermost draw
        ends.append(special.ndtr(z / stretch) if stretch > 0 else float(z > 0))
    low, high = np.quantile(defined, ends)
    return float(low), float(high)


class Replicates(NamedTuple):
    """A statistic of all fires, without some of them, and of each draw; or the mean of several, or a difference."""

    whole: float
    left_out: FloatArray
    draws: FloatArray
    freedom: int
    """Fires that have a say in it, less one for each year."""

    def minus(self, other: "Replicates") -> "Replicates":
        """The difference, draw by draw: both of the same fires."""
        return Replicates.of(self.whole - other.whole, self.left_out - other.left_out, self.draws - other.draws)

    @classmethod
    def of(cls, whole: float, left_out: FloatArray, draws: FloatArray) -> "Replicates":
        """Those of one year."""
        moving = int(np.count_nonzero(left_out != whole)) or left_out.size
        return cls(whole, left_out, draws, moving - 1)

    @classmethod
    def mean(cls, years: Sequence["Replicates"]) -> "Replicates":
        """Of years whose fires are drawn independently."""
        whole = float(np.mean([one.whole for one in years]))
        left_out = np.concatenate([whole + (one.left_out - one.whole) / len(years) for one in years])
        draws = np.mean([one.draws for one in years], axis=0)
        return cls(whole, left_out, draws, sum(max(one.freedom, 0) for one in years))

    def interval(self, value: float) -> tuple[float, float]:
        """95% confidence of what was measured as `value`, where `whole` may be so with ties that it has not."""
        defined = self.draws[~np.isnan(self.draws)]
        if np.isnan(value) or not defined.size:
            return float("nan"), float("nan")
        pull = self.whole - self.left_out[~np.isnan(self.left_out)]
        spread = float(np.sum(pull**2)) ** 1.5
        acceleration = float(np.sum(pull**3)) / (6 * spread) if spread > 0 else 0.0
        low, high = widened_interval(defined, self.freedom, acceleration=acceleration)
        return value + low - self.whole, value + high - self.whole


@dataclass(frozen=True)
class Resamples:
    """How often each fire counts (rows, fires): once, then without a part of them in turn, then in each draw."""

    weights: IntArray
    n_left_out: int

    @classmethod
    def draw(cls, n_fires: int, n_draws: int, rng: np.random.Generator) -> "Resamples":
        """None at all for no draws."""
        draws = draw_fires(n_fires, n_draws, rng)
        if not n_draws:
            return cls(draws, 0)
        parts = min(n_fires, _LEFT_OUT)
        left_out = np.arange(n_fires) % parts != np.arange(parts)[:, None]
        rows = np.ones((1, n_fires), dtype=draws.dtype), left_out.astype(draws.dtype), draws
        return cls(np.concatenate(rows), parts)

    def __bool__(self) -> bool:
        return bool(len(self.weights))

    def replicates(self, rows: FloatArray) -> Replicates:
        """What a statistic of every row of weights comes to."""
        return Replicates.of(float(rows[0]), rows[1 : self.n_left_out + 1], rows[self.n_left_out + 1 :])


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

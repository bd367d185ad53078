"""How well a score ranks positives above negatives, for nested regions at once.

In FCER the score is the uncertainty and the positives are the misclassified pixels. Each metric comes as a
function of counts, which are shared by all metrics and regions, and as a function of pixels.
"""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.rank_counts import ClassCounts, RankCounts, cells_of, nested_counts
from fcer.errors import UndefinedMetricWarning

__all__ = [
    "RankingScores",
    "augrc",
    "augrc_loss",
    "auprc",
    "auprc_score",
    "aurc",
    "aurc_loss",
    "auroc",
    "auroc_score",
    "auroc_within",
    "auroc_within_score",
    "class_counts",
    "excess_aurc",
    "excess_aurc_loss",
    "fpr_at_tpr",
    "fpr_at_tpr_loss",
    "rank_counts",
    "ranking_scores",
    "threshold_at_tpr",
]


class RankingScores(NamedTuple):
    """The ranking metrics of one region; NaN where it holds one class only."""

    auroc: float
    auprc: float
    auroc_within: float
    auroc_alarms: float
    auroc_missed: float
    false_alarm_share: float
    fpr95: float
    aurc: float
    e_aurc: float
    augrc: float


def rank_counts(positive: ArrayLike, score: ArrayLike) -> RankCounts:
    """Counts of one region from its pixels, in any order and shape."""
    is_positive = np.asarray(positive, dtype=bool).ravel()
    scores = np.asarray(score).ravel()
    of_positives = np.ones(np.count_nonzero(is_positive), dtype=np.uint8)
    rest = np.sort(scores[~is_positive])
    return next(nested_counts(scores[is_positive], of_positives, np.zeros_like(of_positives), 1, rest)).missed


def class_counts(error: ArrayLike, uncertainty: ArrayLike, predicted: ArrayLike) -> ClassCounts:
    """Counts of one region by what was predicted, from its pixels, in any order and shape."""
    wrong, fire = (np.asarray(mask, dtype=bool).ravel() for mask in (error, predicted))
    scores = np.asarray(uncertainty).ravel()
    ring = np.zeros(scores.size, dtype=np.uint8)
    return next(nested_counts(scores, cells_of(fire, wrong), ring, 1, np.empty(0)))


def ranking_scores(counts: ClassCounts) -> RankingScores:
    """All ranking metrics of one region, without a warning where they are undefined."""
    pooled = counts.pooled
    n_errors = int(pooled.n_positives)
    return RankingScores(
        float(auroc(pooled)),
        float(auprc(pooled)),
        float(auroc_within(counts)),
        float(auroc(counts.alarms)),
        float(auroc(counts.missed)),
        int(counts.alarms.n_positives) / n_errors if n_errors else float("nan"),
        fpr_at_tpr(pooled),
        aurc(pooled),
        excess_aurc(pooled),
        augrc(pooled),
    )


def auroc(counts: RankCounts) -> FloatArray:
    """The chance that a positive outscores a negative, ties counting half, for each region."""
    with np.errstate(invalid="ignore"):  # 0/0 with one class only
        return np.asarray(_won_twice(counts) / (2 * counts.n_positives * counts.n_negatives))


def auroc_within(counts: ClassCounts) -> FloatArray:
    """The same among pairs that were predicted alike, for each region: what the predicted class says is left out."""
    pairs = sum(one.n_positives * one.n_negatives for one in counts)
    with np.errstate(invalid="ignore"):
        return np.asarray(sum(_won_twice(one) for one in counts) / (2 * np.asarray(pairs)))


def _won_twice(counts: RankCounts) -> IntArray:
    """Twice the number of pairs that the positive wins, as a whole number: no rounding before the division."""
    return np.asarray(np.sum(counts.positives_tied * (2 * counts.negatives_below + counts.negatives_tied), axis=-1))


def auprc(counts: RankCounts) -> FloatArray:
    """Average precision: precision at each positive's score, averaged over positives, for each region."""
    positives_above = counts.n_positives[..., None] - counts.positives_below
    above = positives_above + counts.n_negatives[..., None] - counts.negatives_below
    # a score above the whole region has no precision, and no positive there to count it
    precision = positives_above / np.maximum(above, 1)
    with np.errstate(invalid="ignore"):
        mean = np.sum(counts.positives_tied * precision, axis=-1) / counts.n_positives
    return np.where(counts.both_classes, mean, np.nan)


def fpr_at_tpr(counts: RankCounts, tpr: float = 0.95) -> float:
    """The share of one region's negatives at or above the highest score that catches `tpr` of its positives."""
    if not counts.both_classes:
        return float("nan")
    below = counts.negatives_below[threshold_at_tpr(counts, tpr)]
    return float((counts.n_negatives - below) / counts.n_negatives)


def threshold_at_tpr(counts: RankCounts, tpr: float = 0.95) -> int:
    """Which of one region's scores is the highest that catches `tpr` of its positives."""
    caught = (counts.n_positives - counts.positives_below) / counts.n_positives
    return int(np.flatnonzero(caught >= tpr)[-1])


def aurc(counts: RankCounts) -> float:
    """Mean error rate of what is kept, over every coverage from one region's most certain pixel to all of them.

    Tied pixels come in random order: this is the expected area, so that it depends on the scores alone.
    """
    if not counts.both_classes:
        return float("nan")
    some = np.flatnonzero(counts.positives_tied)
    errors = counts.positives_tied[some]
    below = counts.positives_below[some] + counts.negatives_below[some]
    return _area_under_risk(
        errors, below, errors + counts.negatives_tied[some], int(counts.n_positives + counts.n_negatives)
    )


def excess_aurc(counts: RankCounts) -> float:
    """AURC beyond that of a score which ranks every positive of one region above every negative."""
    if not counts.both_classes:
        return float("nan")
    errors, right = counts.n_positives[None], counts.n_negatives[None]
    return aurc(counts) - _area_under_risk(errors, right, errors, int(errors[0] + right[0]))


def augrc(counts: RankCounts) -> float:
    """Mean share of one region's pixels that are kept and wrong, over every coverage (Traub et al. 2024)."""
    error_rate = counts.n_positives / np.maximum(counts.n_positives + counts.n_negatives, 1)
    return float((1 - auroc(counts)) * error_rate * (1 - error_rate) + error_rate**2 / 2)


def auroc_score(positive: ArrayLike, score: ArrayLike) -> float:
    """Area under the receiver operating characteristic curve.

    >>> auroc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return float(auroc(_defined(rank_counts(positive, score), "AUROC")))


def auroc_within_score(error: ArrayLike, uncertainty: ArrayLike, predicted: ArrayLike) -> float:
    """AUROC among pairs of a wrong and a right pixel that were predicted alike.

    >>> auroc_within_score([0, 1, 0, 1], [0.1, 0.4, 0.7, 0.6], predicted=[0, 0, 1, 1])
    0.5
    """
    counts = class_counts(error, uncertainty, predicted)
    if not any(one.both_classes for one in counts):
        message = "AUROC within the predicted class is undefined and NaN: no class has both wrong and right pixels"
        warnings.warn(message, UndefinedMetricWarning, stacklevel=2)
    return float(auroc_within(counts))


def auprc_score(positive: ArrayLike, score: ArrayLike) -> float:
    """Area under the precision-recall curve, as average precision (no interpolation).

    >>> round(auprc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return float(auprc(_defined(rank_counts(positive, score), "AUPRC")))


def fpr_at_tpr_loss(positive: ArrayLike, score: ArrayLike, tpr: float = 0.95) -> float:
    """False positive rate where the true positive rate first reaches `tpr`.

    >>> fpr_at_tpr_loss([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return fpr_at_tpr(_defined(rank_counts(positive, score), "FPR at a TPR"), tpr)


def aurc_loss(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area under the risk-coverage curve: mean error rate of the most certain pixels, over all coverages.

    >>> round(aurc_loss([0, 0, 1], [0.1, 0.2, 0.9]), 4)  # the error enters last: (0 + 0 + 1/3) / 3
    0.1111
    """
    return aurc(_defined(rank_counts(error, uncertainty), "AURC"))


def excess_aurc_loss(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """AURC beyond the best possible one (E-AURC).

    >>> excess_aurc_loss([0, 0, 1], [0.1, 0.2, 0.9])
    0.0
    """
    return excess_aurc(_defined(rank_counts(error, uncertainty), "E-AURC"))


def augrc_loss(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area under the generalised risk-coverage curve: mean share of pixels kept although wrong.

    >>> round(augrc_loss([0, 0, 1], [0.1, 0.2, 0.9]), 4)
    0.0556
    """
    return augrc(_defined(rank_counts(error, uncertainty), "AUGRC"))


def _area_under_risk(errors: IntArray, below: IntArray, tied: IntArray, n: int) -> float:
    """Expected AURC of `errors` among `tied` pixels that enter after `below` others, for each of some ties.

    An error that enters as pixel r raises the risk at coverages r..n by 1/r, ..., 1/n: by H(n) - H(r-1) in
    harmonic numbers, which averages in closed form over the places that a tied error may take.
    """
    mean = _harmonic(below)
    ties = np.flatnonzero(tied > 1)
    last = below[ties] + tied[ties]
    mean[ties] += last / tied[ties] * (_harmonic(last) - mean[ties]) - 1
    return float(np.sum(errors * (_harmonic(np.array([n])) - mean)) / n)


def _harmonic(n: IntArray) -> FloatArray:
    return np.asarray(digamma(n + 1.0) + np.euler_gamma)


def _defined(counts: RankCounts, metric: str) -> RankCounts:
    if not counts.both_classes:
        found = f"{counts.n_positives} positives and {counts.n_negatives} negatives"
        warnings.warn(f"{metric} is undefined for {found} and is NaN", UndefinedMetricWarning, stacklevel=3)
    return counts

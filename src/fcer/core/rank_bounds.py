"""How far ranking metrics from codes may be from those of the numbers themselves.

Pixels of one code tie. Where a code stands for rounded numbers, its pixels may be in any order: the metrics of the best
and of the worst order are the bound, which the counts themselves tell.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.rank_counts import ClassCounts, RankCounts
from fcer.core.ranking import aurc, threshold_at_tpr

__all__ = ["RankBound", "rank_bound"]

_FEW = 100_000  # ranks below which harmonic numbers are told apart by digamma, and beyond it by a logarithm


class RankBound(NamedTuple):
    """For each metric, how far off it may be; E-AURC shares AURC's, AUGRC is off by a quarter of AUROC's at most."""

    auroc: float = 0.0
    auprc: float = 0.0
    within: float = 0.0
    """Of the AUROC within the predicted class, and of either class."""
    fpr95: float = 0.0
    aurc: float = 0.0

    def or_wider(self, other: "RankBound") -> "RankBound":
        """What holds for both."""
        return RankBound(*map(max, zip(self, other, strict=True)))


def rank_bound(counts: ClassCounts, rounded: BoolArray) -> RankBound:
    """Of one region's counts at codes, of which `rounded` says which stand for rounded numbers."""
    pooled = counts.pooled
    if not pooled.both_classes or not rounded.any():
        return RankBound()
    return RankBound(
        _auroc_bound(pooled, rounded),
        _auprc_bound(pooled, rounded),
        max((_auroc_bound(one, rounded) for one in counts if one.both_classes), default=0.0),
        _fpr_bound(pooled, rounded),
        _aurc_bound(pooled, rounded),
    )


def _auroc_bound(counts: RankCounts, rounded: BoolArray) -> float:
    pairs = (counts.positives_tied.astype(np.float64) * counts.negatives_tied)[rounded]
    return float(np.sum(pairs)) / (2 * float(counts.n_positives) * float(counts.n_negatives))


def _auprc_bound(counts: RankCounts, rounded: BoolArray) -> float:
    tied, others = counts.positives_tied.astype(np.float64), counts.negatives_tied.astype(np.float64)
    n_positives = float(counts.n_positives)
    positives_above = n_positives - counts.positives_below - tied
    negatives_above = float(counts.n_negatives) - counts.negatives_below - others
    above = positives_above + negatives_above
    coded = tied * (positives_above + tied) / (above + tied + others)
    # at best the positives of a code tie, above its negatives; at worst they follow them one by one
    best = tied * (positives_above + tied) / (above + tied)
    worst = tied - (negatives_above + others) * _harmonic_difference(above + others, tied)
    higher, lower = (float(np.sum(gap[rounded])) for gap in (best - coded, coded - worst))
    return max(higher, lower) / n_positives


def _fpr_bound(counts: RankCounts, rounded: BoolArray) -> float:
    """The positive that decides lies in the same code whatever the order: its negatives count, or do not."""
    k = threshold_at_tpr(counts)
    return float(counts.negatives_tied[k] / counts.n_negatives) if rounded[k] else 0.0


def _aurc_bound(counts: RankCounts, rounded: BoolArray) -> float:
    """Errors that enter first, or last, of those that tie."""
    errors, right = counts.positives_tied[rounded], counts.negatives_tied[rounded]
    below = counts.positives_below[rounded] + counts.negatives_below[rounded]
    none = np.zeros_like(errors)
    first, last = (
        aurc(RankCounts(before, errors, none, none, counts.n_positives, counts.n_negatives))
        for before in (below, below + right)
    )
    coded = aurc(RankCounts(below, errors, none, right, counts.n_positives, counts.n_negatives))
    return max(first - coded, coded - last)


def _harmonic_difference(n: FloatArray, more: FloatArray) -> FloatArray:
    """1/(n+1) + ... + 1/(n+more), to 1e-9 of it."""
    few = np.minimum(n, _FEW)
    exact = digamma(few + more + 1) - digamma(few + 1)
    return np.where(n < _FEW, exact, np.log1p(more / (n + 0.5)))

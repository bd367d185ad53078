"""Ranking and reliability from histograms of codes: what pieces of any number of maps add up to.

Pixels of one code tie. Where codes round (see `fcer.core.codes`), the true ranks lie within a bound that the histogram
itself tells.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import ECE_BINS, ReliabilityCurve
from fcer.core.codes import CODE_VALUES
from fcer.core.rank_counts import RankCounts

__all__ = ["RankBound", "histogram_counts", "mass_reliability", "rank_bound"]

_FEW = 100_000  # ranks below which harmonic numbers are told apart by digamma, and beyond it by a logarithm

_MANY_PAIRS = 2.0**61  # of positives and negatives: more than twice as many are no whole number of 64 bits


class RankBound(NamedTuple):
    """How far AUROC and AUPRC from codes may be from those of the numbers themselves."""

    auroc: float = 0.0
    auprc: float = 0.0

    def or_wider(self, other: "RankBound") -> "RankBound":
        """What holds for both."""
        return RankBound(max(self.auroc, other.auroc), max(self.auprc, other.auprc))


def histogram_counts(positives: IntArray, pixels: IntArray) -> RankCounts:
    """Counts of regions (..., codes) from their positives, and all their pixels, by rising code."""
    # of a single region only codes that hold a positive are needed, and there are few
    some = np.flatnonzero(positives) if positives.ndim == 1 else np.arange(positives.shape[-1])
    parts: list[Any] = []
    for histogram in (positives, pixels - positives):
        tied = histogram[..., some]
        parts += [np.cumsum(histogram, axis=-1)[..., some] - tied, tied]
    parts += [np.asarray(histogram.sum(axis=-1)) for histogram in (positives, pixels - positives)]
    if float(np.max(parts[-2], initial=0)) * float(np.max(parts[-1], initial=0)) > _MANY_PAIRS:
        parts = [part.astype(np.float64) for part in parts]
    return RankCounts(*parts)


def rank_bound(positives: IntArray, pixels: IntArray, rounded: BoolArray) -> RankBound:
    """How far the metrics of one region's codes (codes,) may be from exact ones.

    Pixels of a code that stands for rounded numbers may be in any order; those of any other code do tie.
    """
    counts = histogram_counts(positives, pixels)
    if not counts.both_classes:
        return RankBound()
    some = rounded[np.flatnonzero(positives)]
    tied = counts.positives_tied.astype(np.float64)
    others = counts.negatives_tied.astype(np.float64)
    n_positives, n_negatives = float(counts.n_positives), float(counts.n_negatives)
    auroc = float(np.sum((tied * others)[some])) / (2 * n_positives * n_negatives)
    positives_above = n_positives - counts.positives_below - tied
    negatives_above = n_negatives - counts.negatives_below - others
    above = positives_above + negatives_above
    coded = tied * (positives_above + tied) / (above + tied + others)
    # at best the positives of a code tie, above its negatives; at worst they follow them one by one
    best = tied * (positives_above + tied) / (above + tied)
    worst = tied - (negatives_above + others) * _harmonic_difference(above + others, tied)
    higher, lower = (float(np.sum(gap[some])) for gap in (best - coded, coded - worst))
    return RankBound(auroc, max(higher, lower) / n_positives)


def mass_reliability(fire: IntArray, pixels: IntArray, n_bins: int = ECE_BINS) -> ReliabilityCurve:
    """Mean probability and fire rate in bins of equal mass, from burnt and all pixels by code of probability."""
    last = np.cumsum(pixels)
    cuts = np.arange(1, n_bins) * last[-1] // n_bins
    at_cuts = CODE_VALUES[np.searchsorted(last, cuts, side="right")] if last[-1] else np.empty(0)
    edges = np.unique(np.concatenate([[0.0], at_cuts, [1.0]]))
    bins = np.minimum(np.searchsorted(edges, CODE_VALUES, side="right") - 1, edges.size - 2)
    count = np.bincount(bins, weights=pixels, minlength=edges.size - 1).astype(np.int64)
    some = np.flatnonzero(count)
    mean_prob = np.bincount(bins, weights=pixels * CODE_VALUES, minlength=count.size)[some] / count[some]
    fire_rate = np.bincount(bins, weights=fire, minlength=count.size)[some] / count[some]
    return ReliabilityCurve(edges[some], edges[some + 1], count[some], mean_prob, fire_rate)


def _harmonic_difference(n: FloatArray, more: FloatArray) -> FloatArray:
    """1/(n+1) + ... + 1/(n+more), to 1e-9 of it."""
    few = np.minimum(n, _FEW)
    exact = digamma(few + more + 1) - digamma(few + 1)
    return np.where(n < _FEW, exact, np.log1p(more / (n + 0.5)))

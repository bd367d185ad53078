"""One method alone in the anchor region: how it ranks its own errors, and the risk of what it is surest of."""

from typing import NamedTuple

import numpy as np

from fcer.core.arrays import FloatArray
from fcer.core.rank_counts import RankCounts
from fcer.core.ranking import auprc, auroc

__all__ = ["COVERAGES", "OwnErrors", "RiskCoverage", "own_errors", "risk_coverage"]

COVERAGES: FloatArray = np.arange(1, 101) / 100
"""The shares of pixels that are kept, from the surest hundredth to all."""


class OwnErrors(NamedTuple):
    """Ranking of a method's own errors; NaN where the region has no error, or only errors."""

    auroc: float
    auprc: float
    prevalence: float
    n_pixels: int
    n_errors: int


class RiskCoverage(NamedTuple):
    """Error rate among the pixels of least uncertainty, by the share of pixels that is kept."""

    coverage: FloatArray
    risk: FloatArray


def own_errors(counts: RankCounts) -> OwnErrors:
    """The ranking of one region's errors, from their counts."""
    n_errors = int(counts.n_positives)
    n_pixels = n_errors + int(counts.n_negatives)
    prevalence = n_errors / n_pixels if n_pixels else np.nan
    return OwnErrors(float(auroc(counts)), float(auprc(counts)), prevalence, n_pixels, n_errors)


def risk_coverage(counts: RankCounts) -> RiskCoverage:
    """The risk of what is kept, from counts of one region's errors.

    Tied pixels come in random order: among them the expected number of errors grows in a straight line.
    """
    below = counts.positives_below + counts.negatives_below
    tied = counts.positives_tied + counts.negatives_tied
    n_pixels = int(counts.n_positives + counts.n_negatives)
    kept = COVERAGES * n_pixels
    # before and after each tie that holds an error; between ties no error enters
    places = np.column_stack([below, below + tied]).ravel()
    errors = np.column_stack([counts.positives_below, counts.positives_below + counts.positives_tied]).ravel()
    entered = np.interp(kept, [0, *places, n_pixels], [0, *errors, int(counts.n_positives)])
    with np.errstate(invalid="ignore"):  # no pixels, no risk
        return RiskCoverage(COVERAGES, entered / kept)

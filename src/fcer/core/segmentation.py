"""How well a fire is found: average precision, and what counts of right and wrong pixels say."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.ranking import auprc_score
from fcer.errors import UndefinedMetricWarning

__all__ = [
    "FIRE_THRESHOLD",
    "Confusion",
    "average_precision_score",
    "confusion",
    "f1_score",
    "iou_score",
    "precision_score",
    "recall_score",
]

FIRE_THRESHOLD = 0.5
"""A probability above this is a prediction of fire."""


@dataclass(frozen=True)
class Confusion:
    """Pixels by what was predicted and what burnt; adds up over images and years."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    def __add__(self, other: "Confusion") -> "Confusion":
        return Confusion(
            self.true_positives + other.true_positives,
            self.false_positives + other.false_positives,
            self.false_negatives + other.false_negatives,
            self.true_negatives + other.true_negatives,
        )


def confusion(fire: ArrayLike, prob: ArrayLike, threshold: float = FIRE_THRESHOLD) -> Confusion:
    """Count pixels; fire is predicted where the probability is above the threshold.

    >>> confusion([1, 1, 0, 0], [0.9, 0.5, 0.6, 0.1])
    Confusion(true_positives=1, false_positives=1, false_negatives=1, true_negatives=1)
    """
    burnt = np.asarray(fire, dtype=bool)
    predicted = np.asarray(prob) > threshold
    hits = int(np.count_nonzero(predicted & burnt))
    n_predicted, n_burnt = int(np.count_nonzero(predicted)), int(np.count_nonzero(burnt))
    return Confusion(hits, n_predicted - hits, n_burnt - hits, burnt.size - n_predicted - n_burnt + hits)


def precision_score(counts: Confusion) -> float:
    """The share of predicted fire that burnt."""
    return _ratio(counts.true_positives, counts.true_positives + counts.false_positives, "precision")


def recall_score(counts: Confusion) -> float:
    """The share of what burnt that was predicted."""
    return _ratio(counts.true_positives, counts.true_positives + counts.false_negatives, "recall")


def iou_score(counts: Confusion) -> float:
    """Intersection over union of predicted and true fire."""
    union = counts.true_positives + counts.false_positives + counts.false_negatives
    return _ratio(counts.true_positives, union, "intersection over union")


def f1_score(counts: Confusion) -> float:
    """Harmonic mean of precision and recall (the Dice coefficient)."""
    both = 2 * counts.true_positives + counts.false_positives + counts.false_negatives
    return _ratio(2 * counts.true_positives, both, "F1")


def average_precision_score(fire: ArrayLike, prob: ArrayLike) -> float:
    """Average precision of the probabilities as a ranking of fire above everything else.

    >>> average_precision_score([1, 1, 0, 0], [0.9, 0.8, 0.3, 0.1])
    1.0
    """
    return auprc_score(fire, prob)


def _ratio(part: int, whole: int, metric: str) -> float:
    if whole == 0:
        warnings.warn(f"{metric} of no pixels is undefined and is NaN", UndefinedMetricWarning, stacklevel=3)
        return float("nan")
    return part / whole

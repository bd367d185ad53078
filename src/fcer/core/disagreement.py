"""Uncertainty maps from the probabilities of an ensemble's members, or from one model's own.

Members come first: an array (members, ...). Entropies are in bits, so that like every other measure except
the variance they reach from 0 to 1.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from fcer.core.arrays import FloatArray

__all__ = [
    "entropy",
    "expected_entropy",
    "largest_std",
    "margin",
    "member_variance",
    "mutual_information",
    "normalized_std",
    "predictive_entropy",
]


def largest_std(n_members: int) -> float:
    """The largest sample standard deviation that n probabilities can have: half of them 0, half 1.

    >>> round(largest_std(3) * 3**0.5, 12)
    1.0
    """
    if n_members < 2:
        raise ValueError(f"disagreement needs two members or more, not {n_members}")
    zeros, ones = n_members // 2, n_members - n_members // 2
    return math.sqrt(zeros * ones / (n_members * (n_members - 1)))


def normalized_std(members: ArrayLike) -> FloatArray:
    """Sample standard deviation over members, divided by the largest possible: the paper's uncertainty.

    >>> normalized_std([[0.0, 0.5], [0.0, 0.5], [1.0, 0.5]])
    array([1., 0.])
    """
    probs = _members(members)
    # rounding may carry a map of nothing but zeros and ones past 1
    return np.asarray(np.minimum(probs.std(axis=0, ddof=1) / largest_std(len(probs)), 1))


def member_variance(members: ArrayLike) -> FloatArray:
    """Population variance over members: the part of the predicted variance that members disagree about."""
    return np.asarray(_members(members).var(axis=0))


def predictive_entropy(members: ArrayLike) -> FloatArray:
    """Entropy of the members' mean: total uncertainty."""
    return entropy(_members(members).mean(axis=0))


def expected_entropy(members: ArrayLike) -> FloatArray:
    """Mean of the members' entropies: what they agree to be uncertain about."""
    return np.asarray(entropy(_members(members)).mean(axis=0))


def mutual_information(members: ArrayLike) -> FloatArray:
    """Predictive less expected entropy: what is uncertain because members disagree."""
    # never negative but for rounding
    return np.maximum(predictive_entropy(members) - expected_entropy(members), 0)


def entropy(prob: ArrayLike) -> FloatArray:
    """Entropy of one fire probability in bits.

    >>> entropy([0.0, 0.5, 1.0])
    array([0., 1., 0.])
    """
    p = np.asarray(prob, dtype=np.float64)
    return np.asarray(-(xlogy(p, p) + xlogy(1 - p, 1 - p)) / math.log(2) + 0.0)


def margin(prob: ArrayLike) -> FloatArray:
    """How close one fire probability is to the decision: 1 at 0.5, 0 at 0 and 1.

    >>> margin([0.0, 0.25, 0.5])
    array([0. , 0.5, 1. ])
    """
    return np.asarray(1 - np.abs(2 * np.asarray(prob, dtype=np.float64) - 1))


def _members(members: ArrayLike) -> FloatArray:
    probs = np.asarray(members, dtype=np.float64)
    if probs.ndim < 1 or len(probs) < 2:
        raise ValueError(f"disagreement needs two members or more, not an array of shape {probs.shape}")
    return probs

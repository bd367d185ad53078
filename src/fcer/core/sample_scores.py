"""Proper scores and diversity of drawn maps (Gneiting and Raftery 2007): k samples of one image, and what burnt.

Shape suffixes: K samples, H height, W width.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES

__all__ = ["SampleScores", "crps_of_samples", "energy_loss", "sample_scores"]

PIXEL_KM2 = (PIXEL_METRES / 1000) ** 2


class SampleScores(NamedTuple):
    """Of one image's samples; all but diversity are losses."""

    crps_km2: float
    """Continuous ranked probability score of the burnt area."""
    energy: float
    """Energy score of the whole map, in px: Euclidean distances between maps."""
    diversity: float
    """Mean Jaccard distance between two samples: 0 where all are alike, 1 where none share a burning pixel."""


def crps_of_samples(drawn_K: NDArray[np.floating], truth: float) -> float:
    """Mean distance of a sample to the truth, less half of that between two different samples (the fair estimate).

    >>> crps_of_samples(np.array([1.0, 3.0]), 2.0)
    0.0
    """
    return _proper(np.abs(drawn_K - truth), np.abs(drawn_K[:, None] - drawn_K))


def energy_loss(drawn_KHW: NDArray[np.floating], truth_HW: NDArray[np.floating]) -> float:
    """The same of maps, whose distance is Euclidean."""
    flat_KP, truth_P = drawn_KHW.reshape(len(drawn_KHW), -1).astype(np.float64), truth_HW.ravel().astype(np.float64)
    squares_K = np.square(flat_KP).sum(1)
    apart_KK = squares_K[:, None] + squares_K - 2 * flat_KP @ flat_KP.T
    return _proper(np.linalg.norm(flat_KP - truth_P, axis=1), np.sqrt(np.maximum(apart_KK, 0)))


def sample_scores(drawn_KHW: NDArray[np.floating], truth_HW: NDArray[np.floating]) -> SampleScores:
    """All scores of one image."""
    burning_KP = np.asarray(drawn_KHW.reshape(len(drawn_KHW), -1) > 0.5, np.float64)
    area_K = burning_KP.sum(1)
    both_KK = burning_KP @ burning_KP.T
    either_KK = area_K[:, None] + area_K - both_KK
    unlike_KK = 1 - np.divide(both_KK, either_KK, out=np.ones_like(both_KK), where=either_KK > 0)
    pairs = np.triu_indices(len(burning_KP), 1)
    crps = crps_of_samples(area_K * PIXEL_KM2, float(truth_HW.sum()) * PIXEL_KM2)
    return SampleScores(crps, energy_loss(drawn_KHW, truth_HW), float(unlike_KK[pairs].mean()))


def _proper(to_truth_K: NDArray[np.floating], between_KK: NDArray[np.floating]) -> float:
    K = len(to_truth_K)
    return float(to_truth_K.mean() - between_KK.sum() / (2 * K * (K - 1)))

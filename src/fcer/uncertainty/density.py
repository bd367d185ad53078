"""Feature density (DDU, Mukhoti et al. 2023): how far a pixel's features lie from those of the training years.

Shape suffixes: B samples, F features, H height, W width, P pixels, C the two predicted classes, no fire first.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fcer.uncertainty.feature_fits import check_fits, load_fits
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["ClassMoments", "FeatureDensity", "fit_precisions", "squared_distance"]

_RIDGE = 1e-6
"""Of the mean variance, added to each: features that never vary must not decide alone."""


class ClassMoments:
    """Sums over pixels of one predicted class, from which its Gaussian follows."""

    def __init__(self, features: int) -> None:
        self.count = torch.zeros(2, dtype=torch.float64)
        self.total_CF = torch.zeros(2, features, dtype=torch.float64)
        self.products_CFF = torch.zeros(2, features, features, dtype=torch.float64)

    def add(self, features_FP: Tensor, predicted_P: Tensor) -> None:
        """One image's pixels."""
        for c in (0, 1):
            own_FP = features_FP[:, predicted_P == bool(c)].double()
            self.count[c] += own_FP.shape[1]
            self.total_CF[c] += own_FP.sum(1)
            self.products_CFF[c].addmm_(own_FP, own_FP.T)


class ClassGaussians(NamedTuple):
    """One Gaussian for each predicted class."""

    mean_CF: Tensor
    precision_CFF: Tensor


def fit_precisions(moments: ClassMoments) -> ClassGaussians:
    """Mean and inverse covariance; a class with too few pixels for its own takes those of both together."""
    means, precisions = [], []
    for c in (0, 1):
        own = [c] if moments.count[c] > moments.total_CF.shape[1] else [0, 1]
        count = moments.count[own].sum()
        mean_F = moments.total_CF[own].sum(0) / count
        covariance_FF = moments.products_CFF[own].sum(0) / count - torch.outer(mean_F, mean_F)
        ridge = _RIDGE * covariance_FF.diagonal().mean().clamp(min=1e-12)
        precisions.append(torch.linalg.inv(covariance_FF + ridge * torch.eye(len(mean_F), dtype=torch.float64)))
        means.append(mean_F)
    return ClassGaussians(torch.stack(means), torch.stack(precisions))


def squared_distance(features_BFHW: Tensor, predicted_BHW: Tensor, gaussians: ClassGaussians) -> Tensor:
    """Mahalanobis distance squared (B, H, W) to the Gaussian of each pixel's predicted class."""
    distances = []
    for mean_F, precision_FF in zip(*gaussians, strict=True):
        # precision = L L^T: a sum of squares cannot come out below zero
        root_FF = torch.linalg.cholesky(precision_FF).float()
        off_BFHW = features_BFHW - mean_F.float()[:, None, None]
        distances.append(torch.einsum("fg,bfhw->bghw", root_FF, off_BFHW).square().sum(1))
    return torch.where(predicted_BHW, distances[1], distances[0])


@method("density")
class FeatureDensity(Method):
    """One pass, and a quadratic form a pixel."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Squared distance d as d / (F + d): F features are F away on average."""
        fits = load_fits(seen.predictors)
        gaussians = ClassGaussians(fits["density_mean"], fits["density_precision"])
        logits_BHW, features_BFHW = seen.alone
        distance_BHW = squared_distance(features_BFHW.float(), logits_BHW > 0, gaussians)
        return np.asarray(distance_BHW / (features_BFHW.shape[1] + distance_BHW))

    def check(self, predictors: Predictors) -> None:
        """The Gaussians are fitted with the student, on the features of its frozen backbone."""
        check_fits("density", predictors)

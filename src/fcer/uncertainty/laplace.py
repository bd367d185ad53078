"""Last-layer Laplace (Daxberger et al. 2021): a Gaussian over the weights that turn decoder features into fire's logit.

The last layer is a 3×3 convolution, linear in a pixel's 3×3 patch of features, so that the Hessian of its loss is a sum
over pixels in closed form, and a logit's variance a quadratic form of the patch.

Shape suffixes: B samples, F features, H height, W width, P pixels, D weights of the last layer, bias last.
"""

from typing import NamedTuple, cast

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.nn import functional

from fcer.errors import ConfigError
from fcer.models.backbones import UNetBackbone
from fcer.uncertainty.feature_fits import check_fits, load_fits
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["LastLayerLaplace", "LastLayerPosterior", "add_to_hessian", "fit_posterior", "last_layer", "logit_variance"]


class LastLayerPosterior(NamedTuple):
    """What the training years leave open about the last layer."""

    covariance_DD: Tensor
    prior_precision: float
    """Of the zero-mean Gaussian that weights were drawn from: the one under which the data is likeliest."""


@method("laplace")
class LastLayerLaplace(Method):
    """One pass, and a quadratic form a pixel."""

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """The logit's distribution averaged out, by the probit approximation."""
        logits_BHW, variance_BHW = seen.alone.logits_BHW, seen.once("laplace", lambda: _variance(seen))
        return np.asarray((logits_BHW / (1 + torch.pi / 8 * variance_BHW).sqrt()).sigmoid())

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Variance of the logit v as v / (1 + v), which ranks alike and ends at 1."""
        variance_BHW = seen.once("laplace", lambda: _variance(seen))
        return np.asarray(variance_BHW / (1 + variance_BHW))

    def check(self, predictors: Predictors) -> None:
        """The posterior is fitted with the student, on the features of its frozen backbone."""
        check_fits("laplace", predictors)
        if not isinstance(backbone := predictors.backbone.backbone, UNetBackbone):
            raise ConfigError(
                f"methods: laplace knows the last layer of U-Nets, and {backbone.spec.arch} is another package's; "
                "leave it out"
            )


def last_layer(backbone: UNetBackbone) -> Tensor:
    """The weights (D) as they were trained."""
    layer = cast(nn.Conv2d, backbone.model.segmentation_head[0])
    assert layer.bias is not None
    return torch.cat([layer.weight.detach().flatten(), layer.bias.detach()]).double().cpu()


def add_to_hessian(hessian_DD: Tensor, features_FHW: Tensor, logits_P: Tensor, y_P: Tensor, pos_weight: float) -> None:
    """Add one image's part: the second derivative of its summed loss by the last layer's weights, in place."""
    prob_P = logits_P.double().sigmoid()
    weight_P = (1 + (pos_weight - 1) * y_P) * prob_P * (1 - prob_P)
    patches_DP = _patches(features_FHW[None].double())[0] * weight_P.sqrt()
    hessian_DD.addmm_(patches_DP, patches_DP.T)


def fit_posterior(hessian_DD: Tensor, weights_D: Tensor) -> LastLayerPosterior:
    """The posterior under the prior precision of the highest marginal likelihood."""
    eigenvalues_D, vectors_DD = torch.linalg.eigh(hessian_DD)
    eigenvalues_D = eigenvalues_D.clamp(min=0)
    squares, count = float(weights_D.square().sum()), len(weights_D)

    def lost_evidence(log_precision: float) -> float:
        """Minus the log marginal likelihood, but for what no prior changes."""
        precision = np.exp(log_precision)
        return 0.5 * float(precision * squares - count * log_precision + (eigenvalues_D + precision).log().sum())

    best = float(np.exp(minimize_scalar(lost_evidence, bounds=(-16, 16), method="bounded").x))
    return LastLayerPosterior((vectors_DD / (eigenvalues_D + best)) @ vectors_DD.T, best)


def logit_variance(features_BFHW: Tensor, covariance_DD: Tensor) -> Tensor:
    """Variance (B, H, W) of each pixel's logit."""
    B, _, H, W = features_BFHW.shape
    # through the root of the covariance: a sum of squares cannot come out below zero
    root_DD = torch.linalg.cholesky(covariance_DD).float()
    return torch.stack([(root_DD.T @ patches_DP).square().sum(0) for patches_DP in _patches(features_BFHW)]).view(
        B, H, W
    )


def _patches(features_BFHW: Tensor) -> Tensor:
    """What the last layer sees of each pixel (B, D, P): features of its 3×3 neighbours, and 1 for the bias."""
    patches_BDP = functional.unfold(features_BFHW, 3, padding=1)
    return functional.pad(patches_BDP, (0, 0, 0, 1), value=1.0)


def _variance(seen: SeenBatch) -> Tensor:
    return logit_variance(seen.alone.features_BFHW.float(), load_fits(seen.predictors)["laplace_covariance"])

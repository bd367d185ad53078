"""Methods that learn from cached features, fitted in one pass over the training years: laplace and density."""

import torch
from torch import Tensor
from tqdm import tqdm

from fcer.models.backbones import UNetBackbone
from fcer.models.members import Member
from fcer.training.feature_shards import CachedSplit
from fcer.uncertainty.density import ClassMoments, fit_precisions
from fcer.uncertainty.laplace import add_to_hessian, fit_posterior, last_layer

__all__ = ["fit_feature_methods"]


_IMAGES = 256
"""At most so many, evenly chosen, tell what the others would: millions of pixels for some hundred numbers."""


def fit_feature_methods(split: CachedSplit, backbone: Member, views: int = 1) -> dict[str, Tensor]:
    """What they keep, by name; nothing of laplace where the last layer is another package's.

    Parameters
    ----------
    split
        The backbone's features of the training years.
    backbone
        Whose last layer it is.
    views
        How many views of each sample `split` holds: they count as one.
    """
    weights_D = last_layer(backbone.backbone) if isinstance(backbone.backbone, UNetBackbone) else torch.empty(0)
    hessian_DD = torch.zeros(len(weights_D), len(weights_D), dtype=torch.float64)
    moments = ClassMoments(split.features)
    pos_weight = 1.0 if backbone.pos_weight is None else backbone.pos_weight
    chosen = range(0, len(split), -(-len(split) // _IMAGES))
    for index in tqdm(chosen, desc="laplace, density", unit="sample", disable=None, leave=False):
        features_FP, logits_P, _, y_P, _ = split.sample(index)
        features_FHW = features_FP.view(split.features, split.side, split.side)
        if len(weights_D):
            add_to_hessian(hessian_DD, features_FHW, logits_P, y_P, pos_weight)
        moments.add(features_FP, logits_P > 0)
    gaussians = fit_precisions(moments)
    kept = {"density_mean": gaussians.mean_CF, "density_precision": gaussians.precision_CFF}
    if len(weights_D):
        posterior = fit_posterior(hessian_DD * (len(split) / views / len(chosen)), weights_D)
        kept["laplace_covariance"] = posterior.covariance_DD
        kept["laplace_prior_precision"] = torch.tensor(posterior.prior_precision, dtype=torch.float64)
    return kept

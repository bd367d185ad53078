"""Monte Carlo dropout (Gal and Ghahramani 2016): several passes through one backbone with dropout left on.

Dropout is that of the temporal encoder, where there is one, and of the decoder: at the rate of training, or where
members were trained without (`member_dropout` 0) at a small one that is put in for the passes (Ledda et al. 2023).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from fcer.models.backbones import Backbone
from fcer.models.ensemble import standardise
from fcer.models.inference import predict_logits
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import method
from fcer.uncertainty.several_maps import SeveralMaps

__all__ = ["PUT_IN", "MonteCarloDropout", "dropout_left_on"]

PUT_IN = 0.1
"""Share of the decoder's maps that is left out of a backbone that was trained with all of them."""


@method("mc_dropout")
class MonteCarloDropout(SeveralMaps):
    """Mean and normalised standard deviation over passes."""

    def maps(self, seen: SeenBatch) -> FloatMaps:
        """Of passes with dropout left on."""
        return _passes(seen)

    def passes(self, predictors: Predictors) -> int:
        """As many as were asked for."""
        return predictors.dropout_passes


@contextmanager
def dropout_left_on(backbone: Backbone, rate: float = PUT_IN) -> Iterator[None]:
    """Within the block, dropout alone is as in training, the decoder's at this rate."""
    dropouts = [module for module in backbone.modules() if isinstance(module, nn.Dropout | nn.Dropout2d)]
    before = [dropout.p for dropout in dropouts]
    for dropout in dropouts:
        dropout.train()
        if isinstance(dropout, nn.Dropout2d):
            dropout.p = rate
    try:
        yield
    finally:
        for dropout, p in zip(dropouts, before, strict=True):
            dropout.eval()
            dropout.p = p


def _passes(seen: SeenBatch) -> FloatMaps:
    """Probabilities (passes, B, H, W), drawn by the seed and the first sample's number alone."""
    predictors = seen.predictors
    backbone, normalization = predictors.alone
    x_BTCHW = standardise(seen.read, seen.samples, normalization)
    with torch.random.fork_rng(), dropout_left_on(backbone, predictors.dropout or PUT_IN):
        torch.manual_seed(predictors.seed + seen.start)
        passes = [
            predict_logits(backbone, x_BTCHW)[:, 0].sigmoid().cpu().numpy() for _ in range(predictors.dropout_passes)
        ]
    return np.stack(passes)

"""Monte Carlo dropout (Gal and Ghahramani 2016): several passes through one backbone with dropout left on."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from fcer.core.disagreement import normalized_std
from fcer.errors import ConfigError
from fcer.models.backbones import Backbone
from fcer.models.ensemble import standardise
from fcer.models.inference import predict_logits
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["MonteCarloDropout", "dropout_left_on"]


@method("mc_dropout")
class MonteCarloDropout(Method):
    """Mean and normalised standard deviation over passes."""

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """Mean over passes."""
        return np.asarray(seen.once("mc_dropout", lambda: _passes(seen)).mean(0))

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Normalised standard deviation over passes."""
        return normalized_std(seen.once("mc_dropout", lambda: _passes(seen)))

    def passes(self, predictors: Predictors) -> int:
        """As many as were asked for."""
        return predictors.dropout_passes

    def check(self, predictors: Predictors) -> None:
        """The backbone must have dropout."""
        if not _dropouts(backbone := predictors.alone[0]):
            raise ConfigError(
                f"methods: {backbone.spec.arch} has no dropout, so that mc_dropout cannot be; leave it out"
            )


@contextmanager
def dropout_left_on(backbone: Backbone) -> Iterator[None]:
    """Within the block, dropout alone is as in training."""
    for dropout in _dropouts(backbone):
        dropout.train()
    try:
        yield
    finally:
        for dropout in _dropouts(backbone):
            dropout.eval()


def _dropouts(backbone: Backbone) -> list[nn.Module]:
    return [module for module in backbone.modules() if isinstance(module, nn.Dropout)]


def _passes(seen: SeenBatch) -> FloatMaps:
    """Probabilities (passes, B, H, W), drawn by the seed and the first sample's number alone."""
    predictors = seen.predictors
    backbone, normalization = predictors.alone
    x_BTCHW = standardise(seen.read, seen.samples, normalization)
    with torch.random.fork_rng(), dropout_left_on(backbone):
        torch.manual_seed(predictors.seed + seen.start)
        passes = [
            predict_logits(backbone, x_BTCHW)[:, 0].sigmoid().cpu().numpy() for _ in range(predictors.dropout_passes)
        ]
    return np.stack(passes)

"""SWAG (Maddox et al. 2019): the weights of training's last epochs, averaged, with their low-rank spread.

A member's training goes on at a constant rate; after each epoch its weights are one more point. Their mean, their
variances and their last deviations give a Gaussian over networks, from which some are drawn.

Shape suffixes: D weights, E epochs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fcer.models.backbones import Backbone
from fcer.models.ensemble import standardise
from fcer.models.inference import fast, predict_logits
from fcer.models.members import Member
from fcer.uncertainty.families import check_family, read_family
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import method
from fcer.uncertainty.several_maps import SeveralMaps

__all__ = ["BUFFER", "Swag", "WeightSpread", "spread_of"]

BUFFER = "buffer."
"""Before the names of what a network counts and does not learn: its mean over epochs goes with every draw."""


@dataclass(frozen=True)
class WeightSpread:
    """A Gaussian over weights: half of its variance diagonal, half of low rank."""

    mean_D: Tensor
    variance_D: Tensor
    deviation_ED: Tensor
    """Of the last epochs from the mean."""

    def draw(self, rng: torch.Generator) -> Tensor:
        """The weights of one network."""
        epochs = len(self.deviation_ED)
        diagonal_D = self.variance_D.sqrt() * torch.randn(len(self.mean_D), generator=rng)
        low_rank_D = torch.randn(epochs, generator=rng) @ self.deviation_ED / (epochs - 1) ** 0.5
        return torch.add(self.mean_D, diagonal_D + low_rank_D, alpha=0.5**0.5)


def spread_of(weights_ED: Sequence[Tensor]) -> WeightSpread:
    """From the weights after each of two epochs or more."""
    stacked_ED = torch.stack(list(weights_ED)).double()
    mean_D = stacked_ED.mean(0)
    variance_D = (stacked_ED.square().mean(0) - mean_D.square()).clamp(min=0)
    return WeightSpread(mean_D.float(), variance_D.float(), (stacked_ED - mean_D).float())


@method("swag")
class Swag(SeveralMaps):
    """Mean and normalised standard deviation over networks drawn around the backbone's last epochs."""

    def maps(self, seen: SeenBatch) -> FloatMaps:
        """Of the drawn networks."""
        return _passes(seen)

    def passes(self, predictors: Predictors) -> int:
        """As many networks as were asked for."""
        return predictors.dropout_passes

    def parameters(self, predictors: Predictors) -> int:
        """Mean, variance and deviations of the backbone's."""
        return sum(value.numel() for value in read_family(predictors.families["swag"]).values())

    def check(self, predictors: Predictors) -> None:
        """Its weights are trained before."""
        check_family("swag", predictors)


def _passes(seen: SeenBatch) -> FloatMaps:
    predictors = seen.predictors
    member = predictors.backbone
    x_BTCHW = standardise(seen.read, seen.samples, member.normalization)
    networks = _networks(predictors.families["swag"], member, predictors.dropout_passes, predictors.seed)
    return np.stack([predict_logits(network, x_BTCHW)[:, 0].sigmoid().cpu().numpy() for network in networks])


@lru_cache(maxsize=1)
def _networks(path: Path, member: Member, count: int, seed: int) -> list[Backbone]:
    """The drawn networks, made once for all batches of a year."""
    tensors = read_family(path)
    spread = WeightSpread(tensors["mean"], tensors["variance"], tensors["deviation"])
    backbone, _ = member.original()
    for name, buffer in backbone.named_buffers():
        buffer.copy_(tensors[BUFFER + name])
    rng, drawn = torch.Generator().manual_seed(seed), []
    for _ in range(count):
        nn.utils.vector_to_parameters(spread.draw(rng), backbone.parameters())
        drawn.append(fast(backbone))
    return drawn

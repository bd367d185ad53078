"""Conditional flow matching (Lipman et al. 2023): draws maps of tomorrow's fire from noise, given what one pass saw.

A small network moves noise towards a map in some steps; the backbone's features, its logit and today's fire say where
to. Probability is the mean over samples, uncertainty its entropy.

Shape suffixes: B samples of the batch, K draws of each, C channels of the condition, D channels inside, H height,
W width.
"""

from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fcer.core.arrays import BoolArray
from fcer.core.disagreement import entropy
from fcer.uncertainty.families import check_family, family_facts, read_family
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["Diffusion", "MapFlow", "condition", "draw_maps", "flow_loss"]

STEPS = 8
"""From noise to a map."""

_DILATIONS = (1, 2, 4, 8)


class MapFlow(nn.Module):
    """Which way a half-drawn map is to move, given the condition and how far it has come."""

    def __init__(self, conditions: int, width: int = 16) -> None:
        super().__init__()
        self.conditions, self.width = conditions, width
        self.see = nn.Conv2d(conditions, width, 3, padding=1)
        self.enter = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.time = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width * len(_DILATIONS)))
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in _DILATIONS)
        self.leave = nn.Conv2d(width, 1, 1)

    def forward(self, map_BHW: Tensor, time_B: Tensor, seen_BDHW: Tensor) -> Tensor:
        """The velocity (B, H, W); `seen_BDHW` is what `see` makes of the condition, once for all steps."""
        y_BDHW = seen_BDHW + self.enter(map_BHW[:, None])
        shifts = self.time(torch.stack([time_B, time_B.square()], dim=1)).chunk(len(_DILATIONS), dim=1)
        for block, shift_BD in zip(self.blocks, shifts, strict=True):
            y_BDHW = y_BDHW + functional.silu(block(y_BDHW + shift_BD[..., None, None]))
        return cast(Tensor, self.leave(functional.silu(y_BDHW)))[:, 0]


def condition(features_BFHW: Tensor, logits_BHW: Tensor, today_BHW: Tensor) -> Tensor:
    """What the network is told (B, C, H, W), in single precision."""
    return torch.cat([features_BFHW.float(), logits_BHW.float()[:, None], today_BHW.float()[:, None]], dim=1)


def flow_loss(flow: MapFlow, fire_BHW: Tensor, condition_BCHW: Tensor) -> Tensor:
    """Mean squared error of the velocity between noise and a map of fire (1) and none (-1)."""
    goal_BHW, noise_BHW = 2.0 * fire_BHW - 1, torch.randn_like(fire_BHW, dtype=torch.float32)
    time_B = torch.rand(len(goal_BHW))
    part_B11 = time_B[:, None, None]
    velocity_BHW = flow((1 - part_B11) * noise_BHW + part_B11 * goal_BHW, time_B, flow.see(condition_BCHW))
    return functional.mse_loss(velocity_BHW, goal_BHW - noise_BHW)


@torch.inference_mode()
def draw_maps(
    flow: MapFlow, condition_BCHW: Tensor, count: int, rng: torch.Generator, *, steps: int = STEPS
) -> BoolArray:
    """So many maps of each image (B, K, H, W), true where fire burns."""
    seen_BDHW = flow.see(condition_BCHW)
    B, _, H, W = condition_BCHW.shape
    drawn = []
    for _ in range(count):
        map_BHW = torch.randn(B, H, W, generator=rng)
        for step in range(steps):
            map_BHW = map_BHW + flow(map_BHW, torch.full((B,), step / steps), seen_BDHW) / steps
        drawn.append(map_BHW > 0)
    return np.asarray(torch.stack(drawn, dim=1))


@method("diffusion")
class Diffusion(Method):
    """One pass through the backbone, and some draws by a small network."""

    def samples(self, seen: SeenBatch) -> FloatMaps:
        """The draws themselves (B, K, H, W)."""
        return seen.once("diffusion", lambda: _draws(seen)).astype(np.float32)

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """Mean over draws."""
        return np.asarray(self.samples(seen).mean(1))

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Entropy of that mean."""
        return entropy(self.prob(seen))

    def parameters(self, predictors: Predictors) -> int:
        """Those of the backbone and of what draws."""
        flow = load_flow(predictors.families["diffusion"])
        return predictors.backbone_parameters + sum(weight.numel() for weight in flow.parameters())

    def check(self, predictors: Predictors) -> None:
        """It is trained before, on a frozen backbone."""
        check_family("diffusion", predictors)


@lru_cache(maxsize=2)
def load_flow(path: Path) -> MapFlow:
    """The network in a file, ready to draw."""
    facts = family_facts(path)
    flow = MapFlow(int(facts["conditions"]), int(facts["width"]))
    flow.load_state_dict(read_family(path))
    return flow.eval().requires_grad_(False)


def _draws(seen: SeenBatch) -> BoolArray:
    predictors = seen.predictors
    logits_BHW, features_BFHW = seen.of_backbone
    rng = torch.Generator().manual_seed(predictors.seed + seen.start)
    told_BCHW = condition(features_BFHW, logits_BHW, seen.today_BHW)
    return draw_maps(load_flow(predictors.families["diffusion"]), told_BCHW, predictors.dropout_passes, rng)

"""Backbones that tests share: narrow ones, and the golden ones with their expected outputs."""

import copy
import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fcer.models.backbones import Backbone, build
from fcer.models.weight_shapes import state_shapes
from golden_formulas import state_dict

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


torch.set_num_threads(1)  # test processes run side by side already


@cache
def golden_shapes(arch: str) -> dict[str, list[int]]:
    return json.loads((GOLDEN / "backbone_state_dicts.json").read_text())[arch]


@cache
def golden_weights(arch: str) -> dict[str, Tensor]:
    return {key: torch.from_numpy(value) for key, value in state_dict(golden_shapes(arch)).items()}


def golden_outputs(arch: str) -> tuple[Tensor, Tensor]:
    """Logits, and every 4th row and column of the decoder's last feature map."""
    with np.load(GOLDEN / "backbones.npz") as outputs:
        return torch.from_numpy(outputs[f"{arch}_logits"]), torch.from_numpy(outputs[f"{arch}_decoder"])


def small_backbone(arch: str, channels: int = 3, width: float = 0.125, phase: int = 0) -> Backbone:
    """A narrow backbone in eval mode, with batch-norm statistics that are not those of a fresh one."""
    return copy.deepcopy(_small_backbone(arch, channels, width, phase))


@cache
def _small_backbone(arch: str, channels: int, width: float, phase: int) -> Backbone:
    backbone = build(arch, channels, width)
    shapes = {key: list(shape) for key, shape in state_shapes(backbone.spec).items()}
    backbone.load_state_dict({key: torch.from_numpy(value) for key, value in state_dict(shapes, phase).items()})
    return backbone.eval()


def days_of_fire(backbone: Backbone, batch: int = 2, height: int = 32, width: int = 32, seed: int = 0) -> Tensor:
    """An input that fits the backbone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, backbone.days, backbone.spec.channels, height, width, generator=generator)

"""Uncertainty of a single backbone from several passes: with dropout left on, or of turned and mirrored input.

Shape suffixes: K passes, B samples, H height, W width.
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fcer.data.augmentation import View, angle_positions, turn
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.errors import ConfigError
from fcer.models.backbones import Backbone
from fcer.models.ensemble import RawSample, standardise
from fcer.models.inference import predict_logits

__all__ = ["TURNS", "dropout_passes", "turned_passes", "with_dropout"]

TURNS = tuple(View(0, 0, mirrored, False, quarters) for mirrored in (False, True) for quarters in range(4))
"""The eight ways to lay a square on itself; an image that is longer than wide lies across in half of them."""


def with_dropout(backbone: Backbone) -> Backbone:
    """A copy of a backbone for prediction in which dropout alone is as in training."""
    copied = copy.deepcopy(backbone)
    dropouts = [module for module in copied.modules() if isinstance(module, nn.Dropout)]
    if not dropouts:
        raise ConfigError(f"methods: {backbone.spec.arch} has no dropout, so that mc_dropout cannot be; leave it out")
    for dropout in dropouts:
        dropout.train()
    return copied


def dropout_passes(
    backbone: Backbone,
    samples: Samples,
    read: Sequence[RawSample],
    normalization: Normalization,
    *,
    passes: int,
    seed: int,
) -> NDArray[np.float32]:
    """Probabilities (K, B, H, W) of a backbone `with_dropout`, drawn by the seed alone."""
    x_BTCHW = standardise(read, samples, normalization)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return np.stack([predict_logits(backbone, x_BTCHW)[:, 0].sigmoid().cpu().numpy() for _ in range(passes)])


def turned_passes(
    backbone: Backbone, samples: Samples, read: Sequence[RawSample], normalization: Normalization
) -> NDArray[np.float32]:
    """Probabilities (K, B, H, W) of every one of `TURNS`, turned back; angles are turned along."""
    angles = angle_positions(samples.channels)
    passes = []
    for view in TURNS:
        turned = [(turn(raw, view, angles), y) for raw, y in read]
        prob_BHW = predict_logits(backbone, standardise(turned, samples, normalization))[:, 0].sigmoid().cpu().numpy()
        back_BHW = np.rot90(prob_BHW, -view.quarter_turns, axes=(-2, -1))
        passes.append(back_BHW[..., ::-1] if view.mirrored else back_BHW)
    return np.stack(passes)

"""A member's training gone on with at a constant rate, its weights gathered epoch by epoch (SWAG, Maddox et al. 2019).

What batch norms count is averaged over the epochs and not drawn: the paper counts it anew for every draw, which takes a
pass over the training years each.

Shape suffixes: D weights.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fcer.models.backbones import Backbone
from fcer.training.epoch_loop import run_epochs
from fcer.training.epochs import EpochRecord
from fcer.training.learner import adamw
from fcer.training.plain_epoch import train_epoch
from fcer.training.settings import MemberSettings
from fcer.training.teaching import Teaching
from fcer.uncertainty.swag import BUFFER, spread_of

__all__ = ["fit_swag"]

_EPOCHS = 10
"""At most, and no more than a member's; all of their deviations are kept."""

_SHARE = 0.1
"""Of the rate that the member's training began with."""


@dataclass
class _Wanderer:
    """The backbone, and the weights that it had after each epoch."""

    trained: Backbone
    optimizer: torch.optim.AdamW
    points: list[dict[str, Tensor]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on."""
        return {
            "backbone": self.trained.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "points": self.points,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.trained.load_state_dict(state["backbone"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.points = state["points"]


def fit_swag(teaching: Teaching, settings: MemberSettings, resume: tuple[Path, str]) -> dict[str, Tensor]:
    """Mean, variance and deviations of the weights, and the mean of all else that the network holds."""
    member = teaching.backbone
    backbone, _ = member.original()
    samples = teaching.training(member.normalization)
    optimizer = adamw(backbone, settings)
    for group in optimizer.param_groups:
        group["lr"] = settings.lr * _SHARE
    wanderer, epochs = _Wanderer(backbone, optimizer), max(2, min(_EPOCHS, settings.epochs))

    def step(records: list[EpochRecord]) -> EpochRecord:
        started, epoch = time.perf_counter(), len(records) + 1
        loss = train_epoch(backbone, optimizer, samples, settings, epoch)
        weights_D = nn.utils.parameters_to_vector(backbone.parameters()).detach().clone()
        wanderer.points.append({"": weights_D, **{name: value.clone() for name, value in backbone.named_buffers()}})
        # every epoch counts alike: the last is the best
        return EpochRecord(epoch, loss, 0.0, float(epoch), settings.lr * _SHARE, time.perf_counter() - started)

    with torch.random.fork_rng():
        run_epochs(wanderer, step, epochs=epochs, patience=epochs, resume=resume)
    spread = spread_of([point[""] for point in wanderer.points])
    buffers = {
        BUFFER + name: torch.stack([point[name].float() for point in wanderer.points]).mean(0).to(value.dtype)
        for name, value in backbone.named_buffers()
    }
    return {"mean": spread.mean_D, "variance": spread.variance_D, "deviation": spread.deviation_ED, **buffers}

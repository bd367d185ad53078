"""A backbone and what changes its weights: one optimiser step.

Shape suffixes: B samples, T days, C channels, H height, W width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fcer.data.folds import Fold
from fcer.models.backbones import MARGIN, Backbone, build
from fcer.models.precision import computing
from fcer.training.batches import draw_seed
from fcer.training.distributed import World
from fcer.training.optimisers import AdamW
from fcer.training.settings import MemberSettings

__all__ = ["Learner", "adamw", "fire_loss", "make_learner"]


@dataclass(frozen=True)
class Learner:
    """All that one step touches."""

    backbone: Backbone
    model: nn.Module
    """The backbone, wrapped where several processes train it together."""
    optimizer: torch.optim.AdamW
    scaler: torch.amp.GradScaler
    """Keeps small gradients of half-precision numbers from vanishing; idle on a CPU."""
    device: torch.device

    def step(self, x_BTCHW: Tensor, y_B1HW: Tensor, settings: MemberSettings, share: float = 1.0) -> Tensor:
        """Learn from one batch and return its loss; `share` weighs the batch among those of other processes."""
        on_gpu = self.device.type == "cuda"
        x_BTCHW, y_B1HW = (t.to(self.device, non_blocking=on_gpu) for t in (x_BTCHW, y_B1HW))
        half = torch.autocast(self.device.type, torch.float16, enabled=on_gpu)
        with half, computing(settings.precision, self.device):
            logits_B1HW = self.model(x_BTCHW)
        loss = fire_loss(logits_B1HW, y_B1HW, settings.pos_weight)
        self.scaler.scale(loss * share).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.backbone.parameters(), settings.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss.detach()


def make_learner(settings: MemberSettings, fold: Fold, device: torch.device, world: World) -> Learner:
    """A backbone with the fresh weights of this seed and fold."""
    torch.manual_seed(draw_seed(settings.seed, fold.number))
    backbone = build(settings.arch, len(settings.features), settings.width)
    for dropout in backbone.modules():
        if isinstance(dropout, nn.Dropout2d):
            dropout.p = settings.dropout
    backbone.margin = MARGIN  # validated as it will predict
    backbone.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
    optimizer = adamw(backbone, settings)
    scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
    return Learner(backbone, world.wrap(backbone, device), optimizer, scaler, device)


def adamw(model: nn.Module, settings: MemberSettings) -> torch.optim.AdamW:
    """The optimiser of a whole network."""
    weights = list(model.parameters())
    # pulling biases and norms towards zero would only hinder them
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
    ]
    return AdamW(groups, settings.lr, fused=True)


def fire_loss(logits_B1HW: Tensor, y_B1HW: Tensor, pos_weight: float) -> Tensor:
    """Binary cross-entropy, burning pixels weighted, mean over pixels; in single precision whatever the logits."""
    weight = torch.tensor(pos_weight, device=logits_B1HW.device)
    return F.binary_cross_entropy_with_logits(logits_B1HW.float(), y_B1HW, pos_weight=weight)

"""Fitting a student's head on cached features: from seconds to a few minutes, the best epoch kept.

Shape suffixes: N samples, B samples of a batch, P pixels of an image, F features.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from fcer.errors import FcerError
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.training.anchor_region import AnchorRegion
from fcer.training.batches import draw_seed, epoch_batches
from fcer.training.cached import CachedSplit
from fcer.training.head_losses import LOSSES, Loss
from fcer.training.head_settings import HeadSettings
from fcer.training.progress import EpochRecord, best_epoch, stalled
from fcer.training.resume import read_resume, write_resume

__all__ = ["FittedHead", "HeadTask", "fit_epoch", "fit_head", "head_learning_rate", "make_head"]

OnEpoch = Callable[[EpochRecord], None]

_SECONDS_BETWEEN_SAVES = 0.5
"""Epochs on small data take milliseconds: saving each would cost more than repeating it."""


@dataclass(frozen=True)
class HeadTask:
    """What a head is fitted on."""

    training: CachedSplit
    validation: CachedSplit
    region: AnchorRegion
    """Of the validation split."""
    training_targets: Tensor
    """The teacher's uncertainty (N, P)."""
    validation_targets: Tensor

    @classmethod
    def of(cls, training: CachedSplit, validation: CachedSplit, region: AnchorRegion, target: str) -> "HeadTask":
        """With the teacher's uncertainty of this kind."""
        return cls(training, validation, region, training.targets(target), validation.targets(target))

    def prepared(self, loss: str) -> "HeadTask":
        """With targets as this loss takes them."""
        prepare = LOSSES[loss].prepare
        targets = prepare(self.training_targets), prepare(self.validation_targets)
        return HeadTask(self.training, self.validation, self.region, *targets)


@dataclass(frozen=True)
class FittedHead:
    """A head with the weights of its best epoch."""

    head: UncertaintyHead
    records: list[EpochRecord]
    """Every epoch; `score` is the validation AUROC near fire."""
    best_epoch: int


def fit_head(
    task: HeadTask,
    settings: HeadSettings,
    *,
    resume: tuple[Path, str] | None = None,
    on_epoch: OnEpoch | None = None,
    bar: bool = True,
) -> FittedHead:
    """Fit until the last epoch, or until validation AUROC stalls.

    Args:
        task: what to fit on.
        settings: how.
        resume: a file to go on from after a kill, and the key of what is fitted.
        on_epoch: called with each epoch's record, those before a kill included; may raise to stop.
        bar: whether to show progress in a terminal.
    """
    task = task.prepared(settings.loss)
    head, optimizer = make_head(task.training.features, settings)
    records: list[EpochRecord] = []
    best: dict[str, Tensor] = {}
    if resume and (done := read_resume(*resume)):
        head.load_state_dict(done.learner["head"])
        optimizer.load_state_dict(done.learner["optimizer"])
        records, best = done.records, done.best
        for record in records if on_epoch else ():
            on_epoch(record)  # type: ignore[misc]  # there is one

    saved = time.monotonic()
    with _bar(settings, len(records), bar) as progress:
        while len(records) < settings.epochs and not stalled(records, settings.patience):
            record = fit_epoch(task, settings, head, optimizer, len(records))
            records.append(record)
            if best_epoch(records) == record.epoch:
                best = {name: value.clone() for name, value in head.state_dict().items()}
            if resume and time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
                state = {"head": head.state_dict(), "optimizer": optimizer.state_dict()}
                write_resume(*resume, records, state, best)
                saved = time.monotonic()
            progress.update()
            progress.set_postfix(loss=f"{record.train_loss:.4f}", AUROC=f"{record.score:.4f}")
            if on_epoch:
                on_epoch(record)
    head.load_state_dict(best)
    return FittedHead(head.eval(), records, best_epoch(records))


def make_head(features: int, settings: HeadSettings) -> tuple[UncertaintyHead, torch.optim.SGD]:
    """A head with the fresh weights of its seed, and its optimiser."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw_seed(settings.seed))
        head = UncertaintyHead(HeadSpec(features, settings.hidden, settings.logit))
    optimizer = torch.optim.SGD(
        head.parameters(), settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )
    return head, optimizer


def head_learning_rate(settings: HeadSettings, epochs_done: int) -> float:
    """Polynomial decay to zero after the last epoch."""
    return float(settings.lr * (1 - epochs_done / settings.epochs) ** settings.power)


def fit_epoch(
    task: HeadTask, settings: HeadSettings, head: UncertaintyHead, optimizer: torch.optim.SGD, done: int
) -> EpochRecord:
    """Train one epoch after `done` others, and validate; the task is `prepared`."""
    started = time.perf_counter()
    lr = head_learning_rate(settings, done)
    for group in optimizer.param_groups:
        group["lr"] = lr
    train_loss = _train_epoch(task, settings, head, optimizer, done + 1)
    val_loss = _validation_loss(task, settings, head)
    if not (math.isfinite(train_loss) and math.isfinite(val_loss)):
        raise FcerError(
            f"head: the loss is no longer finite in epoch {done + 1} at a learning rate of {lr:.3g}; "
            "start again with a lower --head-lr"
        )
    score = task.region.auroc(head)
    return EpochRecord(done + 1, train_loss, val_loss, score, lr, time.perf_counter() - started)


def _train_epoch(
    task: HeadTask, settings: HeadSettings, head: UncertaintyHead, optimizer: torch.optim.Optimizer, epoch: int
) -> float:
    """One pass over the training samples in an order of its own; the mean loss."""
    order = np.random.default_rng((settings.seed, epoch)).permutation(len(task.training)).tolist()
    room_BFP = _room(task, settings, settings.batch_size)
    learn = _learn_linear if not settings.hidden else _learn
    total = torch.zeros((), dtype=torch.float64)
    for (batch,) in epoch_batches(order, settings.batch_size):
        inputs_BFP = task.training.gather(batch, room_BFP)
        total += learn(head, LOSSES[settings.loss], inputs_BFP, task.training_targets[batch]) * len(batch)
        optimizer.step()
    return float(total) / len(task.training)


def _room(task: HeadTask, settings: HeadSettings, samples: int) -> Tensor:
    """Memory for the head's inputs (B, F, P)."""
    return torch.empty(samples, task.training.features + settings.logit, task.training.pixels)


def _learn(head: UncertaintyHead, loss: Loss, inputs_BFP: Tensor, target_BP: Tensor) -> Tensor:
    """Set the gradients of any head, and return the loss."""
    head.zero_grad()
    value = loss.value(head.layers(inputs_BFP[..., None])[:, 0, :, 0], target_BP)
    value.backward()  # type: ignore[no-untyped-call]
    return value.detach()


@torch.no_grad()
def _learn_linear(head: UncertaintyHead, loss: Loss, inputs_BFP: Tensor, target_BP: Tensor) -> Tensor:
    """The same for the paper's head: a linear map, whose gradients are two products an image."""
    layer = cast(nn.Conv2d, head.layers[0])
    value, slope_BP = loss.slope(_linear(layer, inputs_BFP), target_BP)
    gradient_F = torch.zeros(inputs_BFP.shape[1])
    for inputs_FP, slope_P in zip(inputs_BFP, slope_BP, strict=True):
        gradient_F.addmv_(inputs_FP, slope_P)
    layer.weight.grad = gradient_F.view_as(layer.weight)
    layer.bias.grad = slope_BP.sum()[None]  # type: ignore[union-attr]  # there is one
    return value


def _linear(layer: nn.Conv2d, inputs_BFP: Tensor) -> Tensor:
    """The layer's output (B, P), image by image: torch's products of whole batches are slower with one output."""
    out_BP = inputs_BFP.new_empty(len(inputs_BFP), inputs_BFP.shape[2])
    for inputs_FP, out_P in zip(inputs_BFP, out_BP, strict=True):
        torch.mv(inputs_FP.t(), layer.weight.detach().flatten(), out=out_P)
    return out_BP.add_(layer.bias.detach())  # type: ignore[union-attr]  # there is one


@torch.no_grad()
def _validation_loss(task: HeadTask, settings: HeadSettings, head: UncertaintyHead) -> float:
    room_BFP = _room(task, settings, settings.batch_size)
    total = torch.zeros((), dtype=torch.float64)
    for start in range(0, len(task.validation), settings.batch_size):
        batch = range(start, min(start + settings.batch_size, len(task.validation)))
        inputs_BFP = task.validation.gather(batch, room_BFP)
        if settings.hidden:
            logits_BP = head.layers(inputs_BFP[..., None])[:, 0, :, 0]
        else:
            logits_BP = _linear(cast(nn.Conv2d, head.layers[0]), inputs_BFP)
        target_BP = task.validation_targets[batch.start : batch.stop]
        total += LOSSES[settings.loss].value(logits_BP, target_BP) * len(batch)
    return float(total) / len(task.validation)


def _bar(settings: HeadSettings, epochs_done: int, show: bool) -> "tqdm[Any]":
    disable = None if show else True
    return tqdm(total=settings.epochs, initial=epochs_done, desc="fit head", unit="epoch", disable=disable, leave=False)

"""Fitting a student's head on cached features: from seconds to a few minutes, the best epoch kept.

Shape suffixes: N samples, B samples of a batch, P pixels of an image, Q some of them, F features.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from fcer.training.cached import THIN, CachedSplit
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
    training_targets: Tensor
    """The teacher's uncertainty (N, P)."""
    region: AnchorRegion
    """Of the validation years, where AUROC is measured."""
    validation: Tensor
    """A part of all pixels of the validation years, where the loss is measured: features, then logit (N, F + 1, Q)."""
    validation_targets: Tensor

    @classmethod
    def of(cls, training: CachedSplit, validation: CachedSplit, region: AnchorRegion, target: str) -> "HeadTask":
        """With the teacher's uncertainty of this kind."""
        thinned_NQ = validation.targets(target)[:, ::THIN].contiguous()
        return cls(training.widened(), training.targets(target), region, validation.thinned(), thinned_NQ)

    def prepared(self, loss: str) -> "HeadTask":
        """With targets as this loss takes them."""
        prepare = LOSSES[loss].prepare
        training, validation = prepare(self.training_targets), prepare(self.validation_targets)
        return replace(self, training_targets=training, validation_targets=validation)


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
        head.parameters(), settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay, fused=True
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
    room = _Room(task, settings)
    total = torch.zeros((), dtype=torch.float64)
    for (batch,) in epoch_batches(order, settings.batch_size):
        inputs, target_BP = room.gather(task.training, task.training_targets, batch)
        if settings.hidden:
            head.zero_grad()
            loss = LOSSES[settings.loss].value(_any(head, inputs), target_BP)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss = _learn_linear(head, LOSSES[settings.loss], inputs, target_BP, room)
        optimizer.step()
        total += loss.detach() * len(batch)
    return float(total) / len(task.training)


class _Room:
    """Memory for one batch, used again and again: fresh memory would cost more than the arithmetic."""

    def __init__(self, task: HeadTask, settings: HeadSettings) -> None:
        B, P = settings.batch_size, task.training.pixels
        self._inputs_BFP = torch.empty(B, task.training.features + settings.logit, P)
        self._target_BP = torch.empty(B, P)
        self._maps_3BP = torch.empty(3, B, P)

    def gather(self, split: CachedSplit, targets_NP: Tensor, batch: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """The head's inputs, and what it is to say."""
        for row_P, index in zip(self._target_BP, batch, strict=False):
            row_P.copy_(targets_NP[index])
        return split.gather(batch, self._inputs_BFP), self._target_BP[: len(batch)]

    def maps(self, samples: int) -> tuple[Tensor, Tensor]:
        """One map for each sample, and two more."""
        return self._maps_3BP[0, :samples], self._maps_3BP[1:, :samples]


def _any(head: UncertaintyHead, inputs: Sequence[Tensor]) -> Tensor:
    """The logits (B, P) of any head, for inputs (F, P) of each sample."""
    return cast(Tensor, head.layers(torch.stack(list(inputs))[..., None]))[:, 0, :, 0]


@torch.no_grad()
def _learn_linear(
    head: UncertaintyHead, loss: Loss, inputs: Sequence[Tensor], target_BP: Tensor, room: _Room
) -> Tensor:
    """Set the gradients of the paper's head, a linear map, by two products an image; the loss."""
    layer = cast(nn.Conv2d, head.layers[0])
    value, slope_BP = _linear_loss(layer, loss, inputs, target_BP, room)
    gradient_F = torch.zeros(len(inputs[0]))
    for inputs_FP, slope_P in zip(inputs, slope_BP, strict=True):
        gradient_F.addmv_(inputs_FP, slope_P)
    layer.weight.grad = gradient_F.view_as(layer.weight)
    layer.bias.grad = slope_BP.sum()[None]  # type: ignore[union-attr]  # there is one
    return value


def _linear_loss(
    layer: nn.Conv2d, loss: Loss, inputs: Sequence[Tensor], target_BP: Tensor, room: _Room
) -> tuple[Tensor, Tensor]:
    """Loss and slope, image by image: torch's products of whole batches are slower with one output."""
    logits_BP, more_2BP = room.maps(len(inputs))
    weight_F = layer.weight.detach().flatten()
    for inputs_FP, logits_P in zip(inputs, logits_BP, strict=True):
        torch.mv(inputs_FP.t(), weight_F, out=logits_P)
    logits_BP.add_(layer.bias.detach())  # type: ignore[union-attr]  # there is one
    return loss.slope(logits_BP, target_BP, more_2BP), logits_BP


@torch.no_grad()
def _validation_loss(task: HeadTask, settings: HeadSettings, head: UncertaintyHead) -> float:
    total = 0.0
    parts = zip(torch.split(task.validation, 64), torch.split(task.validation_targets, 64), strict=True)
    for inputs_BFQ, target_BQ in parts:
        logits_BQ = head(inputs_BFQ[:, :-1, :, None], inputs_BFQ[:, -1, :, None])[..., 0]
        total += float(LOSSES[settings.loss].value(logits_BQ, target_BQ)) * len(target_BQ)
    return total / len(task.validation)


def _bar(settings: HeadSettings, epochs_done: int, show: bool) -> "tqdm[Any]":
    disable = None if show else True
    return tqdm(total=settings.epochs, initial=epochs_done, desc="fit head", unit="epoch", disable=disable, leave=False)

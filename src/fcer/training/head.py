"""Fitting a student's head on cached features: from seconds to a few minutes, the best epoch kept.

Shape suffixes: N samples, B samples of a batch, P pixels of an image, Q some of them, F features.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fcer.models.student import UncertaintyHead
from fcer.training.batches import draw_seed, epoch_batches
from fcer.training.epoch_loop import ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch, check_finite
from fcer.training.feature_shards import THIN, CachedSplit
from fcer.training.head_losses import LOSSES
from fcer.training.head_settings import HeadSettings
from fcer.training.linear_head import BatchRoom, set_linear_gradients
from fcer.training.optimisers import SGD
from fcer.training.schedules import head_learning_rate
from fcer.training.threads import torch_threads
from fcer.training.validation_region import RankedPixels, ValidationRegion

__all__ = ["FittedHead", "HeadTask", "fit_epoch", "fit_head", "make_head", "train_epoch", "validation_loss"]

_SECONDS_BETWEEN_SAVES = 0.5
"""Epochs on small data take milliseconds: saving each would cost more than repeating it."""


@dataclass(frozen=True)
class HeadTask:
    """What a head is fitted on."""

    training: CachedSplit
    training_targets: Tensor
    """The teacher's uncertainty, or whatever it is to say (N, P)."""
    region: ValidationRegion
    """Of the validation years, where AUROC is measured."""
    validation: Tensor
    """A part of all pixels of the validation years, where the loss is measured: all numbers of each (N, R, Q)."""
    validation_targets: Tensor

    @classmethod
    def of(cls, training: CachedSplit, validation: CachedSplit, region: ValidationRegion, target: str) -> "HeadTask":
        """With the teacher's uncertainty of this kind."""
        thinned_NQ = validation.targets(target)[:, ::THIN].contiguous()
        return cls(training.widened(), training.targets(target), region, validation.thinned(), thinned_NQ)

    def prepared(self, loss: str) -> "HeadTask":
        """With targets as this loss takes them."""
        prepare = LOSSES[loss].prepare
        training, validation = prepare(self.training_targets), prepare(self.validation_targets)
        return replace(self, training_targets=training, validation_targets=validation)


class FittedHead(NamedTuple):
    """A head with the weights of its best epoch."""

    head: UncertaintyHead
    records: list[EpochRecord]
    """Every epoch; `score` is the validation AUROC near fire."""
    best_epoch: int
    near_fire: RankedPixels
    """Of the validation years, as the head ranks them."""


def fit_head(
    task: HeadTask,
    settings: HeadSettings,
    *,
    resume: tuple[Path, str] | None = None,
    on_epoch: OnEpoch | None = None,
    bar: bool = True,
) -> FittedHead:
    """Fit until the last epoch, or until validation AUROC stalls.

    Parameters
    ----------
    task
        What to fit on.
    settings
        How.
    resume
        A file to go on from after a kill, and the key of what is fitted.
    on_epoch
        Called with each epoch's record, those before a kill included; may raise to stop.
    bar
        Whether to show progress in a terminal.
    """
    task = task.prepared(settings.loss)
    head, optimizer = make_head(task.training.features, settings)
    with _bar(settings, bar) as progress:

        def step(records: list[EpochRecord]) -> EpochRecord:
            record = fit_epoch(task, settings, head, optimizer, len(records))
            progress.update(record.epoch - progress.n)
            progress.set_postfix(loss=f"{record.train_loss:.4f}", AUROC=f"{record.score:.4f}")
            return record

        records, best = run_epochs(
            ModelLearner("head", head, optimizer),
            step,
            epochs=settings.epochs,
            patience=settings.patience,
            resume=resume,
            on_epoch=on_epoch,
            seconds_between_saves=_SECONDS_BETWEEN_SAVES,
        )
    head.load_state_dict(best)
    return FittedHead(head.eval(), records, best_epoch(records), task.region.ranked(head))


def make_head(features: int, settings: HeadSettings) -> tuple[UncertaintyHead, torch.optim.SGD]:
    """A head with the fresh weights of its seed, and its optimiser."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw_seed(settings.seed))
        head = UncertaintyHead(settings.spec(features))
    optimizer = SGD(
        head.parameters(), settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay, fused=True
    )
    return head, optimizer


def fit_epoch(
    task: HeadTask, settings: HeadSettings, head: UncertaintyHead, optimizer: torch.optim.SGD, done: int
) -> EpochRecord:
    """Train one epoch after `done` others, and validate; the task is `prepared`."""
    started = time.perf_counter()
    lr = head_learning_rate(settings, done)
    set_learning_rate(optimizer, lr)
    train_loss = train_epoch(task, settings, head, optimizer, done + 1)
    val_loss = validation_loss(task, settings, head)
    check_finite("head", "head", done + 1, lr, train_loss, val_loss)
    score = task.region.auroc(head)
    return EpochRecord(done + 1, train_loss, val_loss, score, lr, time.perf_counter() - started)


def train_epoch(
    task: HeadTask, settings: HeadSettings, head: UncertaintyHead, optimizer: torch.optim.Optimizer, epoch: int
) -> float:
    """One pass over the training samples in an order of its own; the mean loss."""
    order = np.random.default_rng((settings.seed, epoch)).permutation(len(task.training)).tolist()
    room = BatchRoom(task.training, head.spec, settings.batch_size)
    total = torch.zeros((), dtype=torch.float64)
    # a batch is so little work for a linear map that threads wait longer for one another than they work
    with torch_threads(torch.get_num_threads() if settings.hidden else 1):
        for (batch,) in epoch_batches(order, settings.batch_size):
            inputs, target_BP = room.gather(task.training, task.training_targets, batch)
            if settings.hidden:
                head.zero_grad()
                loss = LOSSES[settings.loss].value(_logits(head, inputs), target_BP)
                loss.backward()  # type: ignore[no-untyped-call]
            else:
                loss = set_linear_gradients(head, LOSSES[settings.loss], inputs, target_BP, room)
            optimizer.step()
            total += loss.detach() * len(batch)
    return float(total) / len(task.training)


def _logits(head: UncertaintyHead, inputs: Sequence[Tensor]) -> Tensor:
    """The logits (B, P) of any head, for inputs (F, P) of each sample."""
    return cast(Tensor, head.layers(torch.stack(list(inputs))[..., None]))[:, 0, :, 0]


@torch.no_grad()
def validation_loss(task: HeadTask, settings: HeadSettings, head: UncertaintyHead) -> float:
    """On the part of the validation pixels that the task holds."""
    total = 0.0
    parts = zip(torch.split(task.validation, 64), torch.split(task.validation_targets, 64), strict=True)
    for inputs_BFQ, target_BQ in parts:
        logits_BQ = head.of_pixels(inputs_BFQ)
        total += float(LOSSES[settings.loss].value(logits_BQ, target_BQ)) * len(target_BQ)
    return total / len(task.validation)


def _bar(settings: HeadSettings, show: bool) -> "tqdm[Any]":
    disable = None if show else True
    return tqdm(total=settings.epochs, desc="fit head", unit="epoch", disable=disable, leave=False)

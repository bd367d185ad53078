"""A head that learns where its backbone errs (DEUP, Lahlou et al. 2023), on fires that the backbone did not learn from.

Those are the validation years' alone. So that no head is scored on what it has seen, fires are dealt into parts, and
for each part a head learns from the others; what these say of the parts that they have not seen chooses the epoch. One
more head learns from all fires, and is the one that is kept.

Shape suffixes: N samples, P pixels.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn, optim
from tqdm import tqdm

from fcer.core.arrays import IntArray
from fcer.errors import DataError, FcerError
from fcer.models.student import UncertaintyHead
from fcer.models.thresholds import threshold_logit
from fcer.training.epoch_loop import run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch
from fcer.training.feature_shards import THIN, CachedSplit, SplitPart
from fcer.training.head import HeadTask, make_head, train_epoch, validation_loss
from fcer.training.head_settings import HeadSettings
from fcer.training.schedules import head_learning_rate
from fcer.training.validation_region import RankedPixels, ValidationRegion

__all__ = ["PARTS", "FittedErrorHead", "fit_error_head"]

PARTS = 5
"""That fires are dealt into, or as many as there are fires."""


class FittedErrorHead(NamedTuple):
    """A head with the weights of its best epoch."""

    head: UncertaintyHead
    records: list[EpochRecord]
    """Every epoch; `score` is the AUROC near fire of heads that have not seen the fires in question."""
    best_epoch: int
    near_fire: RankedPixels
    """As those heads rank them at that epoch."""


@dataclass(frozen=True)
class _CrossFit:
    """One head for each part, which it has not seen, and last the one that sees all."""

    tasks: list[HeadTask]
    trained: nn.ModuleList
    optimizers: list[optim.SGD]
    region: ValidationRegion
    part_P: IntArray
    """The part that each of the region's pixels is of."""

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on."""
        return {"heads": self.trained.state_dict(), "optimizers": [one.state_dict() for one in self.optimizers]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.trained.load_state_dict(state["heads"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def epoch(self, settings: HeadSettings, records: list[EpochRecord]) -> EpochRecord:
        """Train every head once more; losses and AUROC are of parts that a head has not seen."""
        started, done = time.perf_counter(), len(records)
        lr = head_learning_rate(settings, done)
        losses = []
        for task, head, optimizer in zip(self.tasks, self.trained, self.optimizers, strict=True):
            assert isinstance(head, UncertaintyHead)
            set_learning_rate(optimizer, lr)
            train_loss = train_epoch(task, settings, head, optimizer, done + 1)
            losses.append((train_loss, validation_loss(task, settings, head)))
        train_loss, val_loss = (float(value) for value in np.mean(losses[:-1], axis=0))
        if not (math.isfinite(train_loss) and math.isfinite(val_loss)):
            raise FcerError(
                f"head: the loss is no longer finite in epoch {done + 1} at a learning rate of {lr:.3g}; "
                "start again with a lower --head-lr"
            )
        score = self.ranked().auroc()
        return EpochRecord(done + 1, train_loss, val_loss, score, lr, time.perf_counter() - started)

    def ranked(self) -> RankedPixels:
        """The region as heads rank it that have not seen the fire in question."""
        uncertainty_P = np.empty(len(self.part_P), np.float32)
        for part, head in enumerate(self.trained[:-1]):
            assert isinstance(head, UncertaintyHead)
            uncertainty_P[self.part_P == part] = self.region.uncertainty(head)[self.part_P == part]
        return self.region.ranked_by(uncertainty_P)


def fit_error_head(
    split: CachedSplit,
    region: ValidationRegion,
    fire_N: IntArray,
    settings: HeadSettings,
    *,
    threshold: float,
    resume: tuple[Path, str] | None = None,
    on_epoch: OnEpoch | None = None,
) -> FittedErrorHead:
    """Fit until the last epoch, or until AUROC on fires not seen stalls.

    Parameters
    ----------
    split, region
        The validation years, and their pixels near fire.
    fire_N
        Which fire each sample is of.
    settings
        How heads are fitted.
    threshold
        Probability above which the backbone predicts fire.
    resume
        A file to go on from after a kill, and the key of what is fitted.
    on_epoch
        Called with each epoch's record.
    """
    fires, place_N = np.unique(fire_N, return_inverse=True)
    if len(fires) < 2:
        raise DataError(
            "validation years: head_target error learns from some fires and is tested on others, but there is one "
            "alone; add fires of these years, or choose another --head-target"
        )
    crossed = _crossed(split, region, place_N % min(PARTS, len(fires)), settings, threshold)
    with tqdm(total=settings.epochs, desc="fit heads", unit="epoch", disable=None, leave=False) as bar:

        def step(records: list[EpochRecord]) -> EpochRecord:
            bar.update(len(records) + 1 - bar.n)
            return crossed.epoch(settings, records)

        records, best = run_epochs(
            crossed, step, epochs=settings.epochs, patience=settings.patience, resume=resume, on_epoch=on_epoch
        )
    crossed.trained.load_state_dict(best)
    head = crossed.trained[-1].eval()
    assert isinstance(head, UncertaintyHead)
    return FittedErrorHead(head, records, best_epoch(records), crossed.ranked())


def _crossed(
    split: CachedSplit, region: ValidationRegion, part_N: IntArray, settings: HeadSettings, threshold: float
) -> _CrossFit:
    wide, thinned = split.widened(), split.thinned()
    error_NP = torch.cat(
        [(block.logits_BP > threshold_logit(threshold)) != block.y_BP.bool() for block in split.blocks()]
    )
    tasks = []
    for part in range(part_N.max() + 2):
        seen, unseen = np.flatnonzero(part_N != part), np.flatnonzero(part_N == part)
        if part > part_N.max():
            unseen = seen  # the last head sees all, and nobody asks for its loss elsewhere
        targets = (error_NP[seen].float(), error_NP[unseen][:, ::THIN].float())
        task = HeadTask(SplitPart(wide, seen.tolist()), targets[0], region, thinned[unseen], targets[1])
        tasks.append(task.prepared(settings.loss))
    made = [make_head(split.features, settings) for _ in tasks]
    return _CrossFit(
        tasks, nn.ModuleList(head for head, _ in made), [sgd for _, sgd in made], region, part_N[region.sample_P]
    )

"""Training one member of an ensemble: from a fold's years to the checkpoint of its best epoch.

Read from the top: `train_member` prepares and finishes, `_epoch` trains and validates once, `_train_epoch` is one pass.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from fcer import __version__
from fcer.data.calibration_split import choosing
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.data.samples import Samples, too_small
from fcer.errors import ConfigError, DataError
from fcer.models.backbones import MARGIN, BackboneSpec, architecture
from fcer.models.checkpoints import CheckpointInfo, read_info, save_checkpoint
from fcer.models.device import choose_device
from fcer.models.precision import check_precision
from fcer.training.batches import check_batch_size, draw_seed, epoch_batches, load
from fcer.training.distributed import World
from fcer.training.epoch_loop import ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch, check_finite
from fcer.training.history import write_history
from fcer.training.learner import Learner, make_learner
from fcer.training.resume import resume_file
from fcer.training.schedules import member_learning_rate
from fcer.training.settings import MemberSettings, keeps_apart, training_key
from fcer.training.validation import check_classes, validate

__all__ = ["MemberResult", "history_file", "train_member"]


@dataclass(frozen=True)
class MemberResult:
    """A trained member."""

    path: Path
    """Its checkpoint."""
    info: CheckpointInfo
    records: list[EpochRecord]
    """Every epoch, those before a kill too; none where the member was there already."""
    best_epoch: int | None
    """The epoch whose weights were kept; None where the member was there already."""
    trained: bool
    """False where the member was there already."""


@dataclass(frozen=True)
class _Task:
    """What stays the same from epoch to epoch."""

    fold: Fold
    settings: MemberSettings
    key: str
    resume: Path
    world: World
    training: Samples
    validation: Samples


def train_member(
    dataset: Dataset, fold: Fold, settings: MemberSettings, path: Path, *, on_epoch: OnEpoch | None = None
) -> MemberResult:
    """Train on the fold's training years and write the weights that are best on its validation years to `path`.

    A member that is there already is returned as it is. One whose training was killed goes on after its last
    complete epoch and ends with the weights that it would have had. Started by torchrun, all processes call
    this alike; the first one writes.

    Parameters
    ----------
    dataset
        The fires of the fold's training and validation years.
    fold
        Which years are which.
    settings
        How to train.
    path
        The checkpoint to write, `.safetensors`.
    on_epoch
        Called with each epoch's record once the epoch is safe on disk, in the first process only. When training goes on
        after a kill, it is called with the earlier epochs first.
    """
    key = training_key(dataset, fold, settings)
    if path.exists():
        return _finished(path, key, dataset, fold)
    world = World.from_environment()
    device = choose_device(settings.device, world.local_rank)
    check_precision(settings.precision, device)
    training, validation = _samples(dataset, fold, settings)
    check_batch_size(len(training), settings.batch_size, settings.crop, world)
    check_classes(validation, fold.validation)
    task = _Task(fold, settings, key, resume_file(path), world, training, validation)

    world.connect(device)
    # whoever calls this keeps their own random numbers
    with torch.random.fork_rng(), torch.backends.cudnn.flags(benchmark=False, deterministic=True):
        learner = make_learner(settings, fold, device, world)
        with _bar(task) as bar:
            records, best = run_epochs(
                ModelLearner("backbone", learner.backbone, learner.optimizer, {"scaler": learner.scaler}),
                lambda done: _epoch(task, learner, done, bar),
                epochs=settings.epochs,
                patience=settings.patience,
                resume=(task.resume, task.key),
                on_epoch=on_epoch if world.is_main else None,
                is_main=world.is_main,
            )

    learner.backbone.load_state_dict(best)
    kept = best_epoch(records)
    info = _info(dataset, task, learner.backbone.spec, records[kept - 1].score)
    if world.is_main:
        write_history(history_file(path), records)  # before the checkpoint: where that is, all is there
        save_checkpoint(path, learner.backbone, info)
        task.resume.unlink(missing_ok=True)
    world.share(None)  # nobody leaves before the checkpoint is there
    return MemberResult(path, info, records, kept, trained=True)


def history_file(path: Path) -> Path:
    """Where every epoch of the member in `path` is written down."""
    return path.with_suffix(".history.json")


def _epoch(task: _Task, learner: Learner, records: list[EpochRecord], bar: "tqdm[Any]") -> EpochRecord:
    """Train one epoch more, and validate."""
    started = time.perf_counter()
    epoch, lr = len(records) + 1, member_learning_rate(task.settings, records)
    set_learning_rate(learner.optimizer, lr)
    train_loss = _train_epoch(task, learner, epoch, bar)
    task.world.agree_on_buffers(learner.backbone)
    val_loss, val_ap = validate(learner, task.validation, task.settings, task.world)
    check_finite(f"fold {task.fold.number}", "member", epoch, lr, train_loss, val_loss)
    bar.set_postfix(epoch=epoch, loss=f"{train_loss:.4f}", AP=f"{val_ap:.3f}")
    return EpochRecord(epoch, train_loss, val_loss, val_ap, lr, time.perf_counter() - started)


def _train_epoch(task: _Task, learner: Learner, epoch: int, bar: "tqdm[Any]") -> float:
    """One pass over the training samples, in an order and with views and dropout of its own; the mean loss."""
    settings, fold, world = task.settings, task.fold, task.world
    # the order is everybody's, dropout each process's own
    order = np.random.default_rng((settings.seed, fold.number, epoch)).permutation(len(task.training))
    torch.manual_seed(draw_seed(settings.seed, fold.number, epoch, world.rank))
    task.training.set_epoch(epoch)
    learner.model.train()

    batches = epoch_batches(order.tolist(), settings.batch_size, world.size)
    bar.update((epoch - 1) * len(batches) - bar.n)
    mine = [parts[world.rank] for parts in batches]
    loaded = load(task.training, mine, workers=settings.loader_workers, pin=learner.device.type == "cuda")
    total = torch.zeros((), dtype=torch.float64, device=learner.device)
    for parts, (x_BTCHW, y_B1HW) in zip(batches, loaded, strict=True):
        # gradients are averaged over processes: weigh this one's by its part of the batch
        share = len(x_BTCHW) * world.size / sum(map(len, parts))
        total += learner.step(x_BTCHW, y_B1HW, settings, share) * len(x_BTCHW)
        bar.update()
    return world.share(sum(world.gather(float(total))) / len(task.training))


def _samples(dataset: Dataset, fold: Fold, settings: MemberSettings) -> tuple[Samples, Samples]:
    """Random views of the training years, and the central crops of the validation years."""
    normalization = dataset.normalization(fold.train)
    days = architecture(settings.arch).days
    training, validation = dataset.fires(fold.train), dataset.fires(fold.validation)
    if keeps_apart(dataset, fold, settings):
        validation = choosing(validation)
    for fire in (*training, *validation):
        if problem := too_small(fire, settings.crop):
            raise DataError(problem)
    samples = partial(Samples, days=days, features=settings.features, normalization=normalization, crop=settings.crop)
    views = samples(training, augment=True, seed=draw_seed(settings.seed, fold.number))
    if not views:
        raise DataError(
            f"training years {', '.join(map(str, fold.train))}: no fire has {days + 1} consecutive days, which one "
            f"sample of {settings.arch} needs; add longer fires, or choose another --arch"
        )
    return views, samples(validation)


def _finished(path: Path, key: str, dataset: Dataset, fold: Fold) -> MemberResult:
    """The member in `path`, if it is the one that was asked for."""
    info = read_info(path)
    if info.training_key != key:
        other_data = info.dataset_fingerprint != _fingerprint(dataset, fold)
        how = "on other data" if other_data else "with other settings or for another fold"
        raise ConfigError(
            f"{path}: holds a member that was trained {how}; remove the file to train it again, or name another folder"
        )
    resume_file(path).unlink(missing_ok=True)  # left by a kill after the checkpoint was written
    return MemberResult(path, info, [], None, trained=False)


def _info(dataset: Dataset, task: _Task, spec: BackboneSpec, val_ap: float) -> CheckpointInfo:
    fold, normalization = task.fold, dataset.normalization(task.fold.train)
    return CheckpointInfo(
        arch=spec.arch,
        channels=spec.channels,
        width=spec.width,
        fold=fold.number,
        train_years=fold.train,
        val_years=fold.validation,
        test_years=fold.test,
        features=task.settings.features,
        mean=normalization.mean,
        std=normalization.std,
        val_ap=val_ap,
        dataset_fingerprint=_fingerprint(dataset, fold),
        code_version=__version__,
        training_key=task.key,
        pos_weight=task.settings.pos_weight,
        margin=MARGIN,
        apart=keeps_apart(dataset, fold, task.settings),
        precision=task.settings.precision,
    )


def _fingerprint(dataset: Dataset, fold: Fold) -> str:
    return dataset.fingerprint((*fold.train, *fold.validation))


def _bar(task: _Task) -> "tqdm[Any]":
    """Batches of all epochs, for the main process's terminal only."""
    batches = len(epoch_batches(range(len(task.training)), task.settings.batch_size))
    return tqdm(
        total=task.settings.epochs * batches,
        desc=f"fold {task.fold.number}",
        unit="batch",
        disable=None if task.world.is_main else True,
        leave=False,
    )

"""`fcer train`: the members of a test year's ensemble, each a run of its own."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fcer.commands import settings_of
from fcer.commands.study import (
    central_samples,
    checkpoint_folder,
    ensemble_years,
    member_folds,
    member_settings,
    open_data,
)
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.data.dataset import Dataset
from fcer.data.folds import SPLITS, Fold, Slot, slots_of
from fcer.errors import ConfigError
from fcer.models.checkpoints import content_hash
from fcer.models.ensemble import average_precisions
from fcer.models.members import Member, fold_file, load_members
from fcer.models.persistence_baseline import persistence_ap
from fcer.runtime.cluster import current
from fcer.tracking import TrackedRun, tracked_run
from fcer.training import (
    EpochRecord,
    MemberResult,
    MemberSettings,
    MemberToTrain,
    World,
    train_member,
    train_on_cluster,
)

__all__ = ["compare_members", "run", "train_members", "trained_members"]


def run(resolved: Resolved) -> None:
    """Train what is missing, year by year, and compare it with persistence."""
    config = resolved.config
    asked = _asked_folds(resolved)
    world = World.from_environment()
    if world.size > 1 and config.cluster:
        raise ConfigError("cluster: torchrun spreads one member over processes, a cluster members; use one of the two")
    if not world.is_main:
        # One of several processes of torchrun: it works along, and the first one speaks
        for planned in _plan(config, asked):
            train_member(planned.dataset, planned.slot.fold, planned.how, planned.path)
        return
    with tracked_run(
        "train", settings=settings_of(config, "train"), config=to_yaml(resolved), work=config.work
    ) as tracked:
        train_members(config, asked, tracked)
        for folds in asked:
            members = trained_members(config, folds)
            for year in folds[0].test:
                compare_members(config, year, members, tracked)
    print("next: fcer evaluate with the same options, or make ui to see the runs")


@dataclass(frozen=True)
class _Planned:
    """A member that is to be there."""

    dataset: Dataset
    slot: Slot
    how: MemberSettings
    path: Path


def train_members(config: Config, ensembles: Sequence[Sequence[Fold]], tracked: TrackedRun) -> None:
    """Train whatever member of these ensembles is not there yet, each a run of its own; no test year is read.

    On a cluster all of them are trained side by side, and logged as each is there.
    """
    # two test years of WSTS+ share their members
    planned = {one.path: one for one in _plan(config, ensembles)}
    if current() is not None:
        missing = [one for one in planned.values() if not one.path.exists()]
        for path, result in train_on_cluster([MemberToTrain(m.dataset, m.slot.fold, m.how, m.path) for m in missing]):
            _train_tracked(config, planned.pop(path), tracked, result)
    for one in planned.values():
        _train_tracked(config, one, tracked, None)


def trained_members(config: Config, folds: Sequence[Fold]) -> list[Member]:
    """One member for each of `folds`, as `train_members` has left it."""
    folder = checkpoint_folder(config, _training_data(config, folds))
    return load_members(folder, config.arch, folds, member_settings(config).features)


def _asked_folds(resolved: Resolved) -> list[list[Fold]]:
    """The one fold that was named, or those that make the fair teacher of each test year."""
    config = resolved.config
    if config.fold is None:
        return [member_folds(config, year) for year in ensemble_years(config)]
    folds = SPLITS[config.split]
    if config.fold >= len(folds):
        raise ConfigError(f"fold: {config.split} has no fold {config.fold}; choose one from 0 to {len(folds) - 1}")
    fold = folds[config.fold]
    if resolved.origins["year"].startswith("--") and config.year not in fold.test:
        years = ", ".join(map(str, fold.test))
        raise ConfigError(f"fold: fold {config.fold} tests on {years}, not on {config.year}; name one of the two")
    if resolved.origins["members"].startswith("--"):
        raise ConfigError("fold: with --fold one member is trained; leave --members out, or --fold")
    return [[fold]]


def _plan(config: Config, ensembles: Sequence[Sequence[Fold]]) -> list[_Planned]:
    planned = []
    for folds in ensembles:
        dataset = _training_data(config, folds)
        folder = checkpoint_folder(config, dataset)
        for slot in slots_of(folds):
            how = member_settings(config, slot.round)
            planned.append(_Planned(dataset, slot, how, fold_file(folder, slot.label)))
    return planned


def _training_data(config: Config, folds: Sequence[Fold]) -> Dataset:
    return open_data(config, [year for fold in folds for year in (*fold.train, *fold.validation)])


def _train_tracked(config: Config, planned: _Planned, parent: TrackedRun, apart: MemberResult | None) -> None:
    """Train one member under a run of its own, which begins with the first epoch: one that exists needs none.

    One that was trained `apart` is logged in the same way, all epochs at once.
    """
    dataset, slot, how, path = planned.dataset, planned.slot, planned.how, planned.path
    fold = slot.fold
    settings = {**settings_of(config, "train"), "fold": fold.number, "round": slot.round, "seed": how.seed}
    runs: list[TrackedRun] = []
    with ExitStack() as stack:

        def on_epoch(record: EpochRecord) -> None:
            if not runs:
                name = f"member fold {slot.label}"
                runs.append(stack.enter_context(tracked_run(name, settings=settings, parent=parent)))
                runs[0].dataset(dataset.catalog.root, dataset.fingerprint(fold.train), "train")
                runs[0].dataset(dataset.catalog.root, dataset.fingerprint(fold.validation), "validation")
            metrics = {"train/loss": record.train_loss, "val/loss": record.val_loss, "val/ap": record.score}
            runs[0].metrics({**metrics, "train/lr": record.lr}, step=record.epoch)

        result = apart or train_member(dataset, fold, how, path, on_epoch=on_epoch)
        for record in apart.records if apart else ():
            on_epoch(record)
        val_ap = result.info.val_ap if result.info.val_ap is not None else math.nan
        for run in runs:
            run.metrics({"best/val_ap": val_ap, "best/epoch": result.best_epoch or 0})
            run.tags({"fcer.training_key": result.info.training_key or "", "fcer.checkpoint": content_hash(path)})
            run.file(path, "checkpoint")
    said = f"best epoch {result.best_epoch} of {len(result.records)}" if result.trained else "trained before"
    print(f"fold {slot.label}: validation AP {val_ap:.3f}, {said}, {path}")


def compare_members(config: Config, year: int, members: Sequence[Member], tracked: TrackedRun) -> None:
    """Score on a test year: each member, the ensemble, and today's fire as tomorrow's prediction."""
    samples = central_samples(config, open_data(config, [year]), [year])
    persistence = persistence_ap(samples)
    *alone, together = average_precisions(members, samples)
    by_member = {f"test/fold{m.slot.label}_ap": ap for m, ap in zip(members, alone, strict=True)}
    tracked.metrics({"test/persistence_ap": persistence, "test/ensemble_ap": together, **by_member}, step=year)
    scores = ", ".join(f"fold {m.slot.label} {ap:.3f}" for m, ap in zip(members, alone, strict=True))
    print(f"test AP {year}: {scores}, ensemble {together:.3f}, persistence {persistence:.3f}")

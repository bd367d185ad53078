"""The members of ensembles: which are to be there, those that are not trained, and how good they are."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fcer.config.groups import STEPS, recorded
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold, slots_of
from fcer.models.checkpoints import content_hash
from fcer.models.ensemble import average_precisions
from fcer.models.members import Member, fold_file, load_members
from fcer.models.persistence_baseline import persistence_ap
from fcer.pipeline.run_log import RunLog, RunOnDemand
from fcer.pipeline.study_data import Say, StudyData
from fcer.runtime.cluster import current
from fcer.runtime.steps import Step
from fcer.runtime.terminal import NowAndThen
from fcer.training import (
    EpochRecord,
    MemberResult,
    MemberSettings,
    PlannedMember,
    keeps_apart,
    train_on_cluster,
)

__all__ = ["compare_members", "members_of", "plan_members", "train_members"]

_SCHEMA = 2
"""Of a folder of members: raised when other members would lie in it under the same settings and data."""


def plan_members(data: StudyData, folds: Sequence[Fold]) -> list[PlannedMember]:
    """The members of one ensemble, a member for each of `folds`."""
    folder, dataset = _folder(data, folds), _training_data(data, folds)
    return [
        PlannedMember(dataset, slot, MemberSettings.of(data.config, slot.round), fold_file(folder, slot.label))
        for slot in slots_of(folds)
    ]


def members_of(data: StudyData, folds: Sequence[Fold]) -> list[Member]:
    """One member for each of `folds`, which must be there."""
    return load_members(_folder(data, folds), data.config.arch, folds, data.features)


def train_members(data: StudyData, ensembles: Sequence[Sequence[Fold]], log: RunLog, say: Say) -> None:
    """Train whatever member of these ensembles is not there yet, each a run of its own; no test year is read.

    On a cluster all of them are trained side by side, and logged as each is there.
    """
    # two test years of WSTS+ share their members
    planned = {one.path: one for folds in ensembles for one in plan_members(data, folds)}
    if current() is not None:
        missing = [one for one in planned.values() if not one.path.exists()]
        for path, result in train_on_cluster(missing):
            _train_logged(data, planned.pop(path), log, say, result)
    lacking = [path for path in planned if not path.exists()]
    for one in planned.values():
        if len(lacking) > 1 and one.path in lacking:
            say(f"member {lacking.index(one.path) + 1} of {len(lacking)}: fold {one.slot.label}")
        _train_logged(data, one, log, say, None)


def compare_members(data: StudyData, year: int, members: Sequence[Member], log: RunLog, say: Say) -> None:
    """Score on a test year: each member, the ensemble, and today's fire as tomorrow's prediction."""
    samples = data.central_samples([year])
    persistence = persistence_ap(samples)
    *alone, together = average_precisions(members, samples)
    by_member = {f"test/fold{m.slot.label}_ap": ap for m, ap in zip(members, alone, strict=True)}
    log.metrics({"test/persistence_ap": persistence, "test/ensemble_ap": together, **by_member}, step=year)
    scores = ", ".join(f"fold {m.slot.label} {ap:.3f}" for m, ap in zip(members, alone, strict=True))
    said = f"test AP {year}: {scores}, ensemble {together:.3f}, persistence {persistence:.3f}"
    log.note(said)
    say(said)


def _folder(data: StudyData, folds: Sequence[Fold]) -> Path:
    """The named folder, or one of its own for these settings and this data: others never meet its members."""
    if data.config.checkpoints is not None:
        return data.config.checkpoints
    dataset = _training_data(data, folds)
    fingerprint = dataset.fingerprint({fire.year for fire in dataset.catalog.fires})
    how = MemberSettings.of(data.config)
    apart = {"apart": True} if any(keeps_apart(dataset, fold, how) for fold in folds) else {}
    step = Step(_SCHEMA, {"data": fingerprint, **how.deciding(), **apart})
    return step.home(data.work.checkpoints, data.config.arch)


def _training_data(data: StudyData, folds: Sequence[Fold]) -> Dataset:
    return data.open([year for fold in folds for year in (*fold.train, *fold.validation)])


def _train_logged(
    data: StudyData, planned: PlannedMember, parent: RunLog, say: Say, apart: MemberResult | None
) -> None:
    """Train one member under a run of its own, which begins with the first epoch: one that exists needs none.

    One that was trained `apart` is logged in the same way, all epochs at once.
    """
    dataset, slot, path = planned.dataset, planned.slot, planned.path
    with ExitStack() as stack:
        run = RunOnDemand(stack, parent, f"member fold {slot.label}", _settings(data, planned))
        progress = NowAndThen(planned.settings.epochs)

        def begin() -> None:
            for years, context in ((slot.fold.train, "train"), (slot.fold.validation, "validation")):
                run.log.dataset(dataset.catalog.root, dataset.fingerprint(years), context, dataset.profile(years))

        def on_epoch(record: EpochRecord) -> None:
            if run.begun is None:
                begin()
            metrics = {"train/loss": record.train_loss, "val/loss": record.val_loss, "val/ap": record.score}
            run.log.metrics({**metrics, "train/lr": record.lr}, step=record.epoch)
            if line := progress.line(record.epoch):
                say(f"fold {slot.label}: {line}, validation AP {record.score:.3f}")

        result = apart or planned.train(on_epoch)
        for record in apart.records if apart else ():
            on_epoch(record)
        val_ap = result.info.val_ap if result.info.val_ap is not None else math.nan
        digest = content_hash(path)
        if run.begun is None and not parent.knows("fcer.checkpoint", digest):
            begin()  # a kill between the file and its log left a member that no finished run tells of
        if run.begun:
            best = {} if result.best_epoch is None else {"best/epoch": result.best_epoch}
            run.log.metrics({"best/val_ap": val_ap, **best})
            run.log.tags({"fcer.training_key": result.info.training_key or "", "fcer.checkpoint": digest})
            run.log.file(path, "checkpoint")
            run.log.note(
                f"A member of the ensemble, fold {slot.label}: trained on {_years(slot.fold.train)}, validation AP "
                f"**{val_ap:.3f}** on {_years(slot.fold.validation)}, for tests on {_years(slot.fold.test)}."
            )
    said = f"best epoch {result.best_epoch} of {len(result.records)}" if result.trained else "trained before"
    say(f"fold {slot.label}: validation AP {val_ap:.3f}, {said}, {path}")


def _years(years: Sequence[int]) -> str:
    return ", ".join(map(str, years)) or "none"


def _settings(data: StudyData, planned: PlannedMember) -> dict[str, Any]:
    slot = planned.slot
    return {
        **recorded(data.config, STEPS["train"]),
        "fold": slot.fold.number,
        "round": slot.round,
        "seed": planned.settings.seed,
    }

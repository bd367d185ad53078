"""`fcer train`: the members of a test year's ensemble, each a run of its own."""

from collections.abc import Sequence
from pathlib import Path

from fcer.commands import settings_of
from fcer.commands.study import central_samples, checkpoint_folder, folds_of, member_settings, open_data, test_years
from fcer.config import Config, Resolved, to_yaml
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.models.ensemble import average_precisions
from fcer.models.members import Member, fold_file, load_members
from fcer.tracking import TrackedRun, tracked_run
from fcer.training import MemberResult, persistence_ap, train_member

__all__ = ["run", "train_year"]


def run(resolved: Resolved) -> None:
    """Train what is missing, year by year, and compare it with persistence."""
    config = resolved.config
    with tracked_run("train", settings=settings_of(config, "train"), config=to_yaml(resolved)) as tracked:
        for year in test_years(config):
            train_year(config, year, tracked)
    print("next: fcer evaluate with the same options, or make ui to see the runs")


def train_year(config: Config, year: int, tracked: TrackedRun) -> list[Member]:
    """The members whose fair test year is `year`, trained where they are not there yet."""
    folds = folds_of(config, year)
    years = {y for fold in folds for y in (*fold.train, *fold.validation, *fold.test)}
    dataset = open_data(config, sorted(years))
    folder = checkpoint_folder(config, dataset)
    for fold in folds:
        _train_fold(config, dataset, fold, fold_file(folder, fold.number), tracked)
    members = load_members(folder, config.arch, folds, member_settings(config).features)
    _compare(config, dataset, year, members, tracked)
    return members


def _train_fold(config: Config, dataset: Dataset, fold: Fold, path: Path, parent: TrackedRun) -> None:
    """Results are on disk before anything is logged."""
    result = train_member(dataset, fold, member_settings(config), path)
    said = f"best epoch {result.best_epoch}" if result.trained else "already trained"
    print(f"fold {fold.number}: validation AP {result.info.val_ap:.3f} ({said}), {path}")
    if result.trained:
        _log_member(config, dataset, fold, result, parent)


def _log_member(config: Config, dataset: Dataset, fold: Fold, result: MemberResult, parent: TrackedRun) -> None:
    settings = {**settings_of(config, "train"), "fold": fold.number}
    with tracked_run(f"member fold {fold.number}", settings=settings, config="", parent=parent) as run:
        for record in result.records:
            run.metrics(
                {
                    "train/loss": record.train_loss,
                    "val/loss": record.val_loss,
                    "val/ap": record.val_ap,
                    "lr": record.lr,
                },
                step=record.epoch,
            )
        run.metrics({"best/val_ap": result.info.val_ap or 0.0, "best/epoch": result.best_epoch})
        run.dataset(dataset.catalog.root, dataset.fingerprint(fold.train), "train")
        run.dataset(dataset.catalog.root, dataset.fingerprint(fold.validation), "validation")
        run.file(result.path, "checkpoint")


def _compare(config: Config, dataset: Dataset, year: int, members: Sequence[Member], tracked: TrackedRun) -> None:
    """On the test year: each member, the ensemble, and today's fire as tomorrow's prediction."""
    samples = central_samples(config, dataset, [year])
    persistence = persistence_ap(samples)
    *alone, together = average_precisions(members, samples)
    tracked.metrics(
        {"test/persistence_ap": persistence, "test/ensemble_ap": together}
        | {f"test/fold{member.fold.number}_ap": ap for member, ap in zip(members, alone, strict=True)},
        step=year,
    )
    scores = ", ".join(f"fold {m.fold.number} {ap:.3f}" for m, ap in zip(members, alone, strict=True))
    print(f"test AP {year}: {scores}, ensemble {together:.3f}, persistence {persistence:.3f}")

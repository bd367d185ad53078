"""`fcer distill`: the student of each test year, tracked and registered."""

from fcer.commands import settings_of
from fcer.commands.ensemble import YearEnsemble, teaching_of, year_ensembles
from fcer.commands.study import ensemble_years, head_settings, member_settings, open_data
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.models.student_files import head_file
from fcer.tracking import TrackedRun, has_finished_run, tracked_run
from fcer.training import Distilled, EpochRecord, Teaching, distil

__all__ = ["distill_year", "epoch_rows", "run"]


def run(resolved: Resolved) -> None:
    """Distil year by year; several years are runs below one."""
    config = resolved.config
    years = ensemble_years(config)
    settings = settings_of(config, "distill")
    with tracked_run("distill", settings=settings, config=to_yaml(resolved), work=config.work) as tracked:
        for ensemble in year_ensembles(config, years, tracked):
            if len(years) == 1:
                distill_year(config, ensemble, tracked)
                continue
            year = {"year": ensemble.year}
            with tracked_run(f"distill {ensemble.year}", settings={**settings, **year}, parent=tracked) as below:
                distill_year(config, ensemble, below)
    print("next: fcer evaluate with the same options, or make ui to see the runs")


def distill_year(config: Config, ensemble: YearEnsemble, tracked: TrackedRun, *, nested: bool = False) -> Distilled:
    """The year's student, fitted where it is not there yet; all of it is on disk before it is logged.

    It is logged to `tracked`; with `nested` to a run of its own below, unless the store has one of it already.
    """
    fold = ensemble.backbone.fold
    dataset = open_data(config, (*fold.train, *fold.validation))
    teaching = teaching_of(config, ensemble, dataset)
    distilled = distil(
        teaching,
        head_settings(config),
        anchor=config.anchor,
        cache=config.work / "cache" / "features",
        students=config.work / "students",
        joint=None if config.freeze else member_settings(config),
    )
    if not nested:
        _log(tracked, ensemble, teaching, distilled)
    elif distilled.fitted or not has_finished_run("fcer.student", distilled.info.key):
        settings = {**settings_of(config, "distill"), "year": ensemble.year}
        with tracked_run(f"distill {ensemble.year}", settings=settings, parent=tracked) as below:
            _log(below, ensemble, teaching, distilled)
    info = distilled.info
    said = f"best epoch {info.epoch} of {len(distilled.records)}" if distilled.fitted else "distilled before"
    print(f"student {ensemble.year}: validation AUROC {info.val_auroc:.3f} within {info.anchor_px:.3g} px, {said}")
    print(f"student {ensemble.year}: {distilled.folder}")
    return distilled


def _log(tracked: TrackedRun, ensemble: YearEnsemble, teaching: Teaching, distilled: Distilled) -> None:
    root, fold, info = teaching.dataset.catalog.root, teaching.backbone.fold, distilled.info
    tracked.dataset(root, teaching.dataset.fingerprint(fold.train), "train")
    tracked.dataset(root, teaching.dataset.fingerprint(fold.validation), "validation")
    tracked.link_tagged({f"fold{m.slot.label}": ("fcer.checkpoint", m.digest) for m in ensemble.members})
    tracked.curves(row for record in distilled.records for row in epoch_rows(record))
    tracked.metrics({f"best/{name}": value for name, value in info.scores.items()})
    tracked.metrics({"best/epoch": info.epoch, "anchor/px": info.anchor_px})
    years = {"fcer.test_year": str(ensemble.year), "fcer.val_years": " ".join(map(str, info.val_years))}
    tracked.tags({"fcer.student": info.key, **years})
    tracked.file(head_file(distilled.folder), "student")
    tracked.file(distilled.folder / "history.json", "student")
    tracked.model(distilled.folder, metrics={**info.scores, "anchor_px": info.anchor_px})


def epoch_rows(record: EpochRecord) -> list[tuple[str, float, int]]:
    """An epoch as metrics: name, value, step."""
    values = {
        "train/loss": record.train_loss,
        "train/lr": record.lr,
        "val/loss": record.val_loss,
        "val/auroc": record.score,
    }
    return [(name, value, record.epoch) for name, value in values.items()]

"""The student of a test year: distilled where it is not there yet, and logged while it is fitted."""

from contextlib import ExitStack

from fcer.config.groups import STEPS, recorded
from fcer.data.folds import NO_YEAR
from fcer.models.calibration_files import calibration_file
from fcer.models.student_files import fire_scores_file, head_file
from fcer.models.thresholds import settle_threshold
from fcer.pipeline.calibration import calibrate_student
from fcer.pipeline.calibration_log import log_calibration
from fcer.pipeline.ensembles import YearEnsemble, teaching_of
from fcer.pipeline.families import train_families
from fcer.pipeline.run_log import RunLog, RunOnDemand
from fcer.pipeline.study_data import Say, StudyData
from fcer.training import Distilled, EpochRecord, HeadSettings, MemberSettings, Teaching, distil

__all__ = ["distil_student", "epoch_rows", "teachers_in_sample"]


def distil_student(data: StudyData, ensemble: YearEnsemble, log: RunLog, say: Say, *, nested: bool) -> Distilled:
    """The year's student; all of it is on disk before its files are logged.

    It is logged to `log`; with `nested` to a run of its own below, unless one of it is known already.
    """
    config = data.config
    teaching = teaching_of(data, ensemble, train_families(data, ensemble, [config.teacher], say))
    with ExitStack() as stack:
        settings = {**recorded(config, STEPS["distill"]), "year": ensemble.year}
        run = RunOnDemand(stack, log, f"distill {ensemble.year}", settings)
        if not nested:
            run.begun = log
        distilled = distil(
            teaching,
            HeadSettings.of(config),
            anchor=config.anchor,
            cache=data.work.features,
            students=data.work.students,
            joint=None if config.freeze else MemberSettings.of(config),
            threshold=settle_threshold(config.threshold, ensemble.backbone.pos_weight),
            on_epoch=lambda record: run.log.curves(epoch_rows(record)),
        )
        calibrate_student(data, distilled.folder, config.miss, say, ensemble.members)
        if distilled.fitted or not nested or not log.knows("fcer.student", distilled.info.key):
            _log(run.log, ensemble, teaching, distilled)
    info = distilled.info
    said = f"best epoch {info.epoch} of {len(distilled.records)}" if distilled.fitted else "distilled before"
    say(f"student {ensemble.year}: validation AUROC {info.val_auroc:.3f} within {info.anchor_px:.3g} px, {said}")
    say(f"student {ensemble.year}: {distilled.folder}")
    return distilled


def _log(log: RunLog, ensemble: YearEnsemble, teaching: Teaching, distilled: Distilled) -> None:
    dataset, fold, info = teaching.dataset, teaching.backbone.fold, distilled.info
    for used, context in ((fold.train, "train"), (fold.validation, "validation")):
        log.dataset(dataset.catalog.root, dataset.fingerprint(used), context, dataset.profile(used))
    log.link_tagged({f"fold{m.slot.label}": ("fcer.checkpoint", m.digest) for m in ensemble.members})
    if not distilled.fitted:  # else its curves were logged as they came
        log.curves(row for record in distilled.records for row in epoch_rows(record))
    log.metrics({f"best/{name}": value for name, value in info.scores.items()})
    log.metrics({"best/epoch": info.epoch})
    log.params({"anchor_px": info.anchor_px})
    if seen := teachers_in_sample(ensemble):
        log.tags({"fcer.validation_in_sample": seen})
    years = {"fcer.test_year": str(ensemble.year), "fcer.val_years": " ".join(map(str, info.val_years))}
    log.tags({"fcer.student": info.key, **years})
    log.file(head_file(distilled.folder), "student")
    log.file(distilled.folder / "history.json", "student")
    log.file(fire_scores_file(distilled.folder), "student")
    if calibration_file(distilled.folder).exists():
        log_calibration(log, distilled.folder, "student")
    log.note(_note(ensemble, distilled))
    scores = {**info.scores, **_cross_validated(ensemble), "anchor_px": info.anchor_px}
    log.model(distilled.folder, metrics=scores)


def _cross_validated(ensemble: YearEnsemble) -> dict[str, float]:
    """Of a student that holds no year out: its members' AP, each on the years that this one was not trained on."""
    aps = [member.val_ap for member in ensemble.members if member.val_ap is not None]
    return {"cv_ap": sum(aps) / len(aps)} if ensemble.year == NO_YEAR and aps else {}


def _note(ensemble: YearEnsemble, distilled: Distilled) -> str:
    """What the student is and how good, on the years that chose its epoch: the test year belongs to an evaluation."""
    info = distilled.info
    scores = "".join(f"| {name} | {value:.4g} |\n" for name, value in info.scores.items())
    seen = teachers_in_sample(ensemble)
    return (
        f"The student of test year **{ensemble.year}**: validation AUROC **{info.val_auroc:.3f}** of errors within "
        f"{info.anchor_px:.3g} px of fire, from epoch {info.epoch}, on {', '.join(map(str, info.val_years))}. "
        f"Distilled from {len(ensemble.members)} members.{seen and ' Mind that '}{seen}"
        f"\n\n| score | value |\n|:---|---:|\n{scores}"
    )


def teachers_in_sample(ensemble: YearEnsemble) -> str:
    """Which of what is validated is partly in-sample, in words: teachers may have learnt from the validation years."""
    years = set(ensemble.backbone.fold.validation)
    seen = sum(bool(years & set(member.fold.train)) for member in ensemble.members)
    if not seen:
        return ""
    listed = ", ".join(map(str, sorted(years)))
    return (
        f"{seen} of {len(ensemble.members)} teachers were trained on {listed}, where the student is validated: "
        "val/loss, the fidelity to the teacher and an anchor auto are partly in-sample; val/auroc, which is of the "
        "backbone's errors, is not"
    )


def epoch_rows(record: EpochRecord) -> list[tuple[str, float, int]]:
    """An epoch as metrics: name, value, step."""
    values = {
        "train/loss": record.train_loss,
        "train/lr": record.lr,
        "val/loss": record.val_loss,
        "val/auroc": record.score,
    }
    if record.val_ap is not None:
        values["val/ap"] = record.val_ap
    return [(name, value, record.epoch) for name, value in values.items()]

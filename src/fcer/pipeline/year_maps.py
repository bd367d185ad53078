"""The predicted maps of test years, by ensemble, student and what they are compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer import __version__
from fcer.data.samples import Samples
from fcer.errors import ConfigError
from fcer.models.calibration_files import calibration_file
from fcer.models.checkpoints import content_hash
from fcer.models.student_files import LoadedStudent
from fcer.models.thresholds import settle_threshold
from fcer.pipeline.ensembles import YearEnsemble
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.study_data import Say, StudyData
from fcer.runtime import doors
from fcer.runtime.parallel import map_tasks
from fcer.runtime.steps import Step
from fcer.training import put_on, with_threads_of_here
from fcer.uncertainty import Predictors, pass_counts, write_method_maps

__all__ = ["YearMaps", "YearToPredict", "plan_year", "predict_years"]

_SCHEMA = 3
"""Raised when the same inputs would give other maps."""


@dataclass(frozen=True, eq=False)
class YearToPredict:
    """A year's maps, as they are to be."""

    year: int
    predictors: Predictors
    methods: list[str]
    samples: Samples
    path: Path
    step: Step

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class YearMaps:
    """The maps of some test years, on disk."""

    files: list[Path]
    passes: dict[str, int]
    """Passes through a backbone that each method takes where it runs alone."""
    anchors: dict[int, float]
    """By year, the radius in px at which its student was chosen; empty without students."""
    threshold: float
    """The probability above which the years' backbones predict fire."""
    planned: Sequence[YearToPredict]
    """What they were made with."""


def plan_year(
    data: StudyData,
    ensemble: YearEnsemble,
    student: LoadedStudent | None,
    methods: Sequence[str],
    out: Path,
    log: RunLog,
    families: Mapping[str, Path] | None = None,
) -> YearToPredict:
    """What decides the maps of a year, and where they are to lie."""
    config, year = data.config, ensemble.year
    predictors = Predictors(
        ensemble.members,
        ensemble.backbone,
        student,
        ensemble.shared,
        config.passes,
        config.seed,
        config.device,
        settle_threshold(config.threshold, ensemble.backbone.pos_weight),
        config.member_dropout,
        families or {},
    )
    dataset = data.open([year], whole=config.test_image == "full")
    fingerprint = dataset.fingerprint([year])
    log.dataset(dataset.catalog.root, fingerprint, "test", dataset.profile([year]))
    if student:
        log.link_tagged({f"student{year}": ("fcer.student", student.head.key)})
    step = _step(data, fingerprint, predictors, methods)
    return YearToPredict(
        year, predictors, list(methods), data.test_samples(year), out / f"predictions_{year}.npz", step
    )


def predict_years(planned: Sequence[YearToPredict], say: Say) -> YearMaps:
    """Predict what is not there, of the same inputs, already."""
    missing = [one for one in planned if not one.step.is_at(one.path)]
    for one in planned:
        if one not in missing:
            say(f"{one.year}: predicted before, {one.path}")
    # in one process, where torch uses all cores; on a cluster, years side by side
    gpu = any(one.predictors.device == "cuda" for one in planned)
    for _ in map_tasks(with_threads_of_here(_predict), missing, workers=1, label="predict", unit="year", gpu=gpu):
        pass
    anchors = {one.year: one.predictors.student.head.anchor_px for one in planned if one.predictors.student}
    passes = {name: count for one in planned for name, count in pass_counts(one.predictors, one.methods).items()}
    return YearMaps([one.path for one in planned], passes, anchors, _shared_threshold(planned), planned)


def _shared_threshold(planned: Sequence[YearToPredict]) -> float:
    """One for all years, which stand in one table."""
    thresholds = {one.year: one.predictors.threshold for one in planned}
    first, *others = set(thresholds.values())
    if others:
        listed = ", ".join(f"{threshold:.3g} in {year}" for year, threshold in thresholds.items())
        raise ConfigError(
            f"threshold: balanced means {listed}, by what their backbones were trained with; give a number"
        )
    return first


def _predict(planned: YearToPredict) -> None:
    put_on(planned.predictors.members, planned.predictors.device)
    planned.step.begin(planned.path)
    write_method_maps(planned.path, planned.predictors, planned.samples, planned.year, planned.methods)
    planned.step.finish(planned.path)


def _step(data: StudyData, fingerprint: str, predictors: Predictors, methods: Sequence[str]) -> Step:
    config, shared, student = data.config, predictors.shared, predictors.student
    decided_by = {
        "code": __version__,
        "data": fingerprint,
        "members": [member.digest for member in predictors.members],
        "folds": [member.slot.label for member in predictors.members],
        "features": list(predictors.backbone.features),
        "backbone": predictors.backbone.digest,
        "student": student and student.head.key,
        "shared": None if shared is None else [list(shared.mean), list(shared.std)],
        "leading": config.leading,
        "crop": None if config.test_image == "full" else config.crop,
        "methods": [doors.signed(doors.METHODS, name) for name in methods],
        "passes": config.passes,
        "seed": config.seed,
        "families": sorted(path.name for path in predictors.families.values()),
        "threshold": predictors.threshold,
    }
    if student and "calibrated_entropy" in methods and (file := calibration_file(student.folder)).exists():
        decided_by["calibration"] = content_hash(file)
    return Step(_SCHEMA, decided_by)

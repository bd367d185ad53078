"""The predicted maps of a test year, by its ensemble, its student and what they are compared with."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fcer import __version__
from fcer.commands.distill import distill_year
from fcer.commands.ensemble import YearEnsemble, year_ensembles
from fcer.commands.study import evaluated_samples, open_data, test_years
from fcer.config.resolve import Resolved
from fcer.config.settings import Config
from fcer.data.samples import Samples
from fcer.errors import DataError, FcerWarning
from fcer.models.student_files import LoadedStudent, load_student
from fcer.runtime.files import atomic_path
from fcer.runtime.parallel import map_tasks
from fcer.tracking import TrackedRun
from fcer.training import put_on, with_threads_of_here
from fcer.uncertainty import Predictors, pass_counts, write_method_maps

__all__ = ["Predicted", "predict_years"]

_SCHEMA = 1
"""Part of every key: raise it when the same inputs would give other maps."""


@dataclass(frozen=True)
class Predicted:
    """Maps on disk, and how many passes each method takes."""

    files: list[Path]
    passes: dict[str, int]
    anchors_px: list[float]
    """At which the students of the years were chosen."""

    @property
    def anchor_px(self) -> float | None:
        """Their mean; none without a student."""
        return sum(self.anchors_px) / len(self.anchors_px) if self.anchors_px else None


def predict_years(resolved: Resolved, out: Path, tracked: TrackedRun) -> Predicted:
    """Write `predictions_YEAR.npz` for each test year; what is there, of the same inputs, stays."""
    config = resolved.config
    predicted = Predicted([], {}, [])
    planned = []
    for ensemble in year_ensembles(config, test_years(config), tracked):
        year, student = ensemble.year, _student(resolved, ensemble, tracked)
        predictors = Predictors(
            ensemble.members, ensemble.backbone, student, ensemble.shared, config.passes, config.seed, config.device
        )
        methods = [name for name in config.methods if name != "student" or student]
        if student:
            tracked.link_tagged({f"student{year}": ("fcer.student", student.head.key)})
            predicted.anchors_px.append(student.head.anchor_px)
        planned.append(_plan(config, predictors, methods, year, out, tracked))
        predicted.files.append(planned[-1].path)
        predicted.passes.update(pass_counts(predictors, methods))
    missing = [one for one in planned if not one.is_there()]
    for one in planned:
        if one not in missing:
            print(f"{one.year}: predicted before, {one.path}")
    # in one process, where torch uses all cores; on a cluster, years side by side
    predict, gpu = with_threads_of_here(_predict), config.device == "cuda"
    for _ in map_tasks(predict, missing, workers=1, label="predict", unit="year", gpu=gpu):
        pass
    return predicted


def _student(resolved: Resolved, ensemble: YearEnsemble, tracked: TrackedRun) -> LoadedStudent | None:
    """The year's student, distilled where it is not there yet.

    Data that holds the test year alone is enough to evaluate an ensemble: unless the student was asked for by name,
    it is then left out, and that is said.
    """
    config = resolved.config
    if "student" not in config.methods:
        return None
    try:
        return load_student(distill_year(config, ensemble, tracked, nested=True).folder)
    except DataError as error:
        if resolved.origins["methods"] != "default":
            raise
        warnings.warn(f"student {ensemble.year}: left out, since it cannot be distilled ({error})", FcerWarning, 2)
        return None


@dataclass(frozen=True, eq=False)
class _YearToPredict:
    """A year's maps, as they are to be."""

    year: int
    predictors: Predictors
    methods: list[str]
    samples: Samples
    path: Path
    key: str
    """Stands for everything that decides the maps."""

    def __str__(self) -> str:
        return str(self.path)

    @property
    def note(self) -> Path:
        """Says which maps lie beside it."""
        return self.path.with_suffix(".json")

    def is_there(self) -> bool:
        """Whether the maps are those of this key, and nobody has written others in their place."""
        if not (self.path.exists() and self.note.exists()):
            return False
        return bool(json.loads(self.note.read_text()) == self.described())

    def described(self) -> dict[str, Any]:
        """What the note says of the maps as they are."""
        state = self.path.stat()
        return {"key": self.key, "file": [state.st_size, state.st_mtime_ns]}


def _plan(
    config: Config, predictors: Predictors, methods: list[str], year: int, out: Path, tracked: TrackedRun
) -> _YearToPredict:
    dataset = open_data(config, [year], whole=config.test_image == "full")
    fingerprint = dataset.fingerprint([year])
    tracked.dataset(dataset.catalog.root, fingerprint, "test")
    samples, path = evaluated_samples(config, dataset, [year]), out / f"predictions_{year}.npz"
    return _YearToPredict(year, predictors, methods, samples, path, _key(config, fingerprint, predictors, methods))


def _predict(planned: _YearToPredict) -> None:
    put_on(planned.predictors.members, planned.predictors.device)
    planned.note.unlink(missing_ok=True)
    write_method_maps(planned.path, planned.predictors, planned.samples, planned.year, planned.methods)
    with atomic_path(planned.note) as partial:
        partial.write_text(json.dumps(planned.described()) + "\n")


def _key(config: Config, fingerprint: str, predictors: Predictors, methods: Sequence[str]) -> str:
    """SHA-256 in hex of everything that decides the maps."""
    shared, student = predictors.shared, predictors.student
    decided_by = {
        "schema": _SCHEMA,
        "code": __version__,
        "data": fingerprint,
        "members": [member.digest for member in predictors.members],
        "folds": [member.slot.label for member in predictors.members],
        "features": list(predictors.backbone.features),
        "backbone": predictors.backbone.digest,
        "student": student and student.head.key,
        "shared": None if shared is None else [list(shared.mean), list(shared.std)],
        "crop": None if config.test_image == "full" else config.crop,
        "methods": list(methods),
        "passes": config.passes,
        "seed": config.seed,
    }
    return hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()

"""The predicted maps of a test year, by its ensemble, its student and what they are compared with."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer import __version__
from fcer.commands.distill import distill_year
from fcer.commands.ensemble import YearEnsemble, year_ensemble
from fcer.commands.study import central_samples, open_data, test_years
from fcer.config import Config
from fcer.errors import DataError, FcerWarning
from fcer.files import atomic_path
from fcer.models.methods import Predictors, pass_counts, write_method_maps
from fcer.models.student_files import LoadedStudent, load_student
from fcer.resolve import Resolved
from fcer.tracking import TrackedRun

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
    for year in test_years(config):
        ensemble = year_ensemble(config, year, tracked)
        student = _student(resolved, ensemble, tracked)
        predictors = Predictors(
            ensemble.members, ensemble.backbone, student, ensemble.shared, config.passes, config.seed
        )
        methods = [name for name in config.methods if name != "student" or student]
        if student:
            tracked.link_tagged({f"student{year}": ("fcer.student", student.head.key)})
            predicted.anchors_px.append(student.head.anchor_px)
        path = out / f"predictions_{year}.npz"
        _predict_year(config, year, predictors, methods, path, tracked)
        predicted.files.append(path)
        predicted.passes.update(pass_counts(predictors, methods))
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


def _predict_year(
    config: Config, year: int, predictors: Predictors, methods: Sequence[str], path: Path, tracked: TrackedRun
) -> None:
    dataset = open_data(config, [year])
    tracked.dataset(dataset.catalog.root, dataset.fingerprint([year]), "test")
    key = _key(config, dataset.fingerprint([year]), predictors, methods)
    note = path.with_suffix(".json")
    if _is_there(path, note, key):
        print(f"{year}: predicted before, {path}")
        return
    note.unlink(missing_ok=True)
    write_method_maps(path, predictors, central_samples(config, dataset, [year]), year, methods)
    with atomic_path(note) as partial:
        partial.write_text(json.dumps({"key": key, "file": _file_state(path)}) + "\n")


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
        "crop": config.crop,
        "methods": list(methods),
        "passes": config.passes,
        "seed": config.seed,
    }
    return hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()


def _is_there(path: Path, note: Path, key: str) -> bool:
    """Whether the maps are those of this key, and nobody has written others in their place."""
    if not (path.exists() and note.exists()):
        return False
    said = json.loads(note.read_text())
    return bool(said == {"key": key, "file": _file_state(path)})


def _file_state(path: Path) -> list[int]:
    return [path.stat().st_size, path.stat().st_mtime_ns]

"""Maps of validation fires, by models that were not trained on them: a student, and the members beside it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fcer.core.disagreement import entropy
from fcer.data.folds import NO_YEAR
from fcer.data.samples import Samples
from fcer.errors import FcerError, InputError
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps
from fcer.models.ensemble import batches_of, pass_through, sample_labels, standardise
from fcer.models.members import Member
from fcer.models.student_files import LoadedStudent
from fcer.pipeline.members import members_of
from fcer.pipeline.study_data import StudyData
from fcer.runtime.steps import Step

__all__ = ["members_beside", "members_here", "other_maps", "validation_maps"]

_SCHEMA = 1
"""Raised when the maps of the same validation fires would be others."""

_Predicted = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Probability, uncertainty and what burnt (B, H, W)."""


def validation_maps(data: StudyData, loaded: LoadedStudent) -> PredictedMaps:
    """The student's maps of its validation fires; of those that chose no epoch, where some were kept apart."""
    years, apart = loaded.head.val_years, loaded.backbone.apart
    samples = data.calibration_samples(years, apart=apart)

    def predict(where: slice) -> _Predicted:
        read = [samples.raw(k) for k in range(where.start, where.stop)]
        maps = loaded.student.predict(standardise(read, samples, loaded.normalization))
        prob, unc = maps.probability_BHW.cpu().numpy(), maps.uncertainty_BHW.cpu().numpy()
        return prob, unc, np.stack([label for _, label in read])

    decided_by = {"student": loaded.head.key, **({"apart": True} if apart else {})}
    return _found_or_made(data, loaded.folder.name, decided_by, years, samples, predict)


def other_maps(data: StudyData, member: Member) -> PredictedMaps:
    """A member's maps of its own validation fires, in the student's place.

    It has no student's uncertainty: its entropy stands there, and nothing that asks for uncertainty may use it.
    """
    years = member.fold.validation
    samples = data.calibration_samples(years, apart=member.apart)

    def predict(where: slice) -> _Predicted:
        seen = pass_through([member], samples, [samples.raw(k) for k in range(where.start, where.stop)])
        prob = seen.probabilities_KBHW[0]
        return prob, entropy(prob).astype(np.float32), seen.y_BHW

    return _found_or_made(data, member.path.stem, {"member": member.digest}, years, samples, predict)


def members_here(data: StudyData, loaded: LoadedStudent) -> list[Member]:
    """The members that taught a student, as far as they lie where this study keeps its own."""
    test = loaded.backbone.test_years
    try:
        found = members_of(data, data.member_folds(test[0] if test else NO_YEAR))
    except FcerError:
        return []
    return [member for member in found if member.digest in loaded.head.teachers]


def members_beside(loaded: LoadedStudent, members: Sequence[Member]) -> list[Member]:
    """One member for each other group of validation fires; of a backbone that was trained along, none is like it."""
    if not loaded.head.frozen:
        return []
    seen, found = set(loaded.head.val_years), []
    for member in members:
        if not seen & set(member.fold.validation):
            seen |= set(member.fold.validation)
            found.append(member)
    return found


def _found_or_made(
    data: StudyData,
    name: str,
    decided_by: dict[str, Any],
    years: Sequence[int],
    samples: Samples,
    predict: Callable[[slice], _Predicted],
) -> PredictedMaps:
    fingerprint = data.open(years).fingerprint(years)
    decided_by = {**decided_by, "data": fingerprint, "leading": data.config.leading, "crop": data.config.crop}
    step = Step(_SCHEMA, decided_by)
    path = step.home(data.work.calibrations, name).with_suffix(".npz")
    if not step.is_at(path):
        step.begin(path)
        _write(path, samples, [predict(where) for where in batches_of(samples)], years[0])
        step.finish(path)
    return open_maps(path)


def _write(path: Path, samples: Samples, predicted: Sequence[_Predicted], year: int) -> None:
    prob, unc, burnt = (np.concatenate(parts) for parts in zip(*predicted, strict=True))
    if not burnt.any():
        raise InputError(f"no validation fire of {year} burns on a day that is predicted; give data of days with fire")
    arrays = {
        "y": burnt,
        "student_prob": prob,
        "student_unc": unc,
        "entropy_prob": prob,
        "entropy_unc": entropy(prob).astype(np.float32),
        **sample_labels(samples),
    }
    write_maps(path, PredictedMaps.from_arrays(arrays, year=year, source=str(path)))

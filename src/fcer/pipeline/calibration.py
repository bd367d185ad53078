"""What a student's probabilities mean near the fire, and zones with a guarantee: from its validation fires."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fcer import __version__
from fcer.core.disagreement import entropy
from fcer.core.recalibration import Recalibration
from fcer.core.recalibration_fits import RecalibrationChoice
from fcer.core.zones import FAMILIES, ZoneRule
from fcer.errors import InputError
from fcer.evaluation.calibration_table import calibration_rows
from fcer.evaluation.calibrators import calibrator
from fcer.evaluation.guarantees import Guarantees
from fcer.evaluation.recalibrated import choose_from_maps, number_fires
from fcer.evaluation.results import Results
from fcer.evaluation.zone_table import zone_tables
from fcer.evaluation.zones import fit_family, fit_rules
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps
from fcer.models.calibration_files import Calibration, load_calibration, save_calibration
from fcer.models.ensemble import batches_of, sample_labels, standardise
from fcer.models.student_files import LoadedStudent, load_student
from fcer.pipeline.expected import expectations_of
from fcer.pipeline.scoring import prior_of
from fcer.pipeline.study_data import Say, StudyData
from fcer.runtime import doors
from fcer.runtime.steps import Step

__all__ = ["calibrate_student", "student_guarantees"]

_SCHEMA = 1
"""Raised when the maps of the same validation fires would be others."""

_METHODS = ("student", "entropy")
"""Zones are compared among methods of one pass: an ensemble's other members have seen the validation fires."""


def calibrate_student(data: StudyData, folder: Path, misses: Sequence[float], say: Say) -> Calibration | None:
    """The calibration in the student's folder, made where it is not there for these misses.

    Its fires also chose the student's epoch: few datasets have enough to hold others out, and every zone says so. None
    where they are too few to say anything, which is said too.
    """
    loaded = load_student(folder)
    there = load_calibration(folder, loaded.head.key)
    calibrators = tuple(doors.signed(doors.CALIBRATORS, name) for name in calibrator.installed)
    if (
        there is not None
        and {rule.miss for rule in there.rules} >= _possible(misses, len(there.fires))
        and set(calibrators) <= set(there.calibrators)
    ):
        return there
    prior = prior_of(data.config)
    with validation_maps(data, loaded) as maps:
        try:
            weight = prior.weight if prior.kind == "prior" else None
            choice = choose_from_maps([maps], "student", loaded.head.anchor_px, weight)
            rules = _rules(maps, prior, misses)
        except InputError as error:
            say(f"{folder.name}: not calibrated, since {error}")
            return None
        fires = tuple(map(str, number_fires(maps)[0]))
        expected = expectations_of(maps, data.central_samples(loaded.head.val_years), loaded, choice.recalibration)
    calibration = Calibration(
        student=loaded.head.key,
        recalibration=choice.recalibration,
        zone_prior=prior,
        rules=rules,
        radius_px=loaded.head.anchor_px,
        fires=fires,
        chose_epoch=True,
        code_version=__version__,
        expected=expected,
        calibrators=calibrators,
    )
    save_calibration(folder, calibration)
    _tell(say, folder.name, calibration, choice, misses)
    return calibration


def student_guarantees(
    data: StudyData, students: Sequence[Path], test_files: Sequence[Path], results: Results
) -> Guarantees | None:
    """What the calibrations of the years' students, which `predict` applies, promise and keep on the test years."""
    config, prior = data.config, prior_of(data.config)
    found = []
    for folder, file in zip(students, test_files, strict=True):
        loaded = load_student(folder)
        calibration = load_calibration(folder, loaded.head.key)
        if calibration is None or not calibration.rules:
            continue
        with open_maps(file) as test, validation_maps(data, loaded) as validation:
            methods = [name for name in _METHODS if name in test.methods]
            zones = zone_tables(
                [validation],
                test,
                methods,
                misses=config.miss,
                recalibrations=dict.fromkeys(methods, prior),
                n_draws=config.bootstrap,
                seed=config.seed,
            )
            radii = list(results.sweep["radius_px"].unique())
            rows = calibration_rows(test, {"student": calibration.recalibration}, radii, "validation")
            found.append(Guarantees(zones, rows))
    return Guarantees.join(found)


def validation_maps(data: StudyData, loaded: LoadedStudent) -> PredictedMaps:
    """The student's maps of its validation fires, which its backbone was not trained on."""
    years = loaded.head.val_years
    dataset = data.open(years)
    decided_by = {"student": loaded.head.key, "data": dataset.fingerprint(years), "leading": data.config.leading}
    step = Step(_SCHEMA, {**decided_by, "crop": data.config.crop})
    path = step.home(data.work.calibrations, loaded.folder.name).with_suffix(".npz")
    if not step.is_at(path):
        step.begin(path)
        _predict(data, loaded, path)
        step.finish(path)
    return open_maps(path)


def _predict(data: StudyData, loaded: LoadedStudent, path: Path) -> None:
    samples = data.central_samples(loaded.head.val_years)
    prob, unc, burnt = [], [], []
    for where in batches_of(samples):
        read = [samples.raw(k) for k in range(where.start, where.stop)]
        maps = loaded.student.predict(standardise(read, samples, loaded.normalization))
        prob.append(maps.probability_BHW.cpu().numpy())
        unc.append(maps.uncertainty_BHW.cpu().numpy())
        burnt.append(np.stack([label for _, label in read]))
    p = np.concatenate(prob)
    arrays = {
        "y": np.concatenate(burnt),
        "student_prob": p,
        "student_unc": np.concatenate(unc),
        "entropy_prob": p,
        "entropy_unc": entropy(p).astype(np.float32),
        **sample_labels(samples),
    }
    write_maps(path, PredictedMaps.from_arrays(arrays, year=loaded.head.val_years[0], source=str(path)))


def _possible(misses: Sequence[float], fires: int) -> set[float]:
    return {miss for miss in misses if miss >= 1 / (fires + 1)}


def _rules(maps: PredictedMaps, prior: Recalibration, misses: Sequence[float]) -> tuple[ZoneRule, ...]:
    """Of every family, for each miss that its fires can guarantee."""
    rules: list[ZoneRule] = []
    for family in FAMILIES:
        fires = fit_family([maps], "student", family, prior)
        for miss in misses:
            try:
                rules += fit_rules(fires, [miss])
            except InputError:
                continue  # too few fires for so small a miss; what is there is told
    return tuple(rules)


def _tell(say: Say, name: str, calibration: Calibration, choice: RecalibrationChoice, misses: Sequence[float]) -> None:
    candidates = ", ".join(f"{kind} {nll:.4f}" for kind, nll in choice.nll.items())
    say(
        f"{name}: calibrated by {calibration.recalibration.kind}; NLL of fires that a candidate was not fitted on, "
        f"within {calibration.radius_px:.3g} px of the forecast's fire: {candidates} (ties to the simpler)"
    )
    zones = calibration.rules_of("threshold")
    possible = "; ".join(
        f"{rule.miss:g}: {rule.area_km2:.0f} km² on average, {rule.area_2n_km2:.0f} if {2 * rule.n_fires} fires like "
        f"these {rule.n_fires} calibrated"
        for rule in zones
    )
    lacking = [f"{miss:g}" for miss in misses if miss not in {rule.miss for rule in zones}]
    without = f"; {len(calibration.fires)} fires cannot guarantee {', '.join(lacking)}" if lacking else ""
    say(f"{name}: {f'zones by expected miss: {possible}' if possible else 'no zone'}{without}")

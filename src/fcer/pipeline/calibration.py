"""What a student's probabilities mean near the fire, and zones with a guarantee: from its validation fires."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fcer import __version__
from fcer.core.disagreement import entropy
from fcer.core.recalibration import NONE, Kind, Recalibration, choose_recalibration, fit_recalibration
from fcer.core.zones import FAMILIES, ZoneRule
from fcer.errors import InputError
from fcer.evaluation.recalibrated import near_fire_counts, number_fires
from fcer.evaluation.zone_table import zone_tables
from fcer.evaluation.zones import fit_family, fit_rules
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps
from fcer.models.calibration_files import Calibration, calibration_file, load_calibration, save_calibration
from fcer.models.ensemble import batches_of, sample_labels, standardise
from fcer.models.student_files import LoadedStudent, load_student
from fcer.pipeline.expected import expectations_of
from fcer.pipeline.study_data import Say, StudyData
from fcer.runtime.files import atomic_path
from fcer.runtime.steps import Step

__all__ = ["calibrate_student", "write_zones"]

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
    if there is not None and {rule.miss for rule in there.rules} >= _possible(misses, len(there.fires)):
        return there
    prior = _prior(data)
    with validation_maps(data, loaded) as maps:
        try:
            weight = prior.weight if prior.kind == "prior" else None
            recalibration = _recalibration(maps, weight)
            rules = _rules(maps, prior, misses)
        except InputError as error:
            say(f"{folder.name}: not calibrated, since {error}")
            return None
        fires = tuple(map(str, number_fires(maps)[0]))
        expected = expectations_of(maps, data.central_samples(loaded.head.val_years), loaded, recalibration)
    calibration = Calibration(
        student=loaded.head.key,
        recalibration=recalibration,
        zone_prior=prior,
        rules=rules,
        radius_px=float(_everywhere(maps)),
        fires=fires,
        chose_epoch=True,
        code_version=__version__,
        expected=expected,
    )
    save_calibration(folder, calibration)
    _tell(say, folder.name, calibration, misses)
    return calibration


def write_zones(data: StudyData, students: Sequence[Path], test_files: Sequence[Path], out: Path) -> pd.DataFrame:
    """`zones.csv`: nominal and realised miss and area on each test year, and by fire in `zones_by_fire.csv`."""
    config, prior = data.config, _prior(data)
    found = []
    for folder, file in zip(students, test_files, strict=True):
        if not calibration_file(folder).exists():
            continue
        with open_maps(file) as test, validation_maps(data, load_student(folder)) as validation:
            methods = [name for name in _METHODS if name in test.methods]
            how = {"misses": config.miss, "recalibrations": dict.fromkeys(methods, prior), "seed": config.seed}
            found.append(zone_tables([validation], test, methods, n_draws=config.bootstrap, **how))  # type: ignore[arg-type]
    if not found:
        return pd.DataFrame()
    tables = {"zones": [one.table for one in found], "zones_by_fire": [one.by_fire for one in found]}
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    for name, table in joined.items():
        with atomic_path(out / f"{name}.csv") as partial:
            table.to_csv(partial, index=False)
    return joined["zones"]


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


def _recalibration(maps: PredictedMaps, weight: float | None) -> Recalibration:
    """None, the training weight undone, or scale and shift of the logit, whichever has the best cross-validated NLL.

    Fitted on whole images: near the fire is known of tomorrow's fire only afterwards, and what is calibrated there says
    10 % of every pixel far away. Isotonic steps would put all pixels that may burn into the highest one or two.
    """
    counts = near_fire_counts(maps, "student", _everywhere(maps))
    nll = choose_recalibration(counts, weight).nll
    kinds: list[Kind] = [kind for kind in ("none", "prior", "platt") if kind in nll]
    return fit_recalibration(min(kinds, key=lambda kind: nll[kind]), counts, weight)


def _everywhere(maps: PredictedMaps) -> int:
    """A radius in px that reaches across any image."""
    return sum(maps.shape[1:])


def _prior(data: StudyData) -> Recalibration:
    """What undoes the weight of fire pixels in the loss, where it is known: of members that we trained."""
    return NONE if data.config.checkpoints is not None else Recalibration("prior", weight=data.config.pos_weight)


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


def _tell(say: Say, name: str, calibration: Calibration, misses: Sequence[float]) -> None:
    zones = calibration.rules_of("threshold")
    possible = ", ".join(f"{rule.miss:g} ({rule.area_km2:.0f} km² on average)" for rule in zones)
    lacking = [f"{miss:g}" for miss in misses if miss not in {rule.miss for rule in zones}]
    without = f"; {len(calibration.fires)} fires cannot guarantee {', '.join(lacking)}" if lacking else ""
    guaranteed = f"zones for an expected miss of at most {possible}" if possible else "no zone"
    say(f"{name}: calibrated by {calibration.recalibration.kind}, {guaranteed}{without}")

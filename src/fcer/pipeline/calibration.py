"""What a student's probabilities mean near the fire, and zones with a guarantee: from its validation fires."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from fcer import __version__
from fcer.core.recalibration import Recalibration
from fcer.core.risk_control import ENOUGH_FIRES, smallest_miss
from fcer.core.zones import FAMILIES, FamilyName, ZoneRule
from fcer.errors import InputError
from fcer.evaluation.calibration_table import calibration_rows, held_out_rows
from fcer.evaluation.calibrators import calibrator
from fcer.evaluation.guarantees import Guarantees
from fcer.evaluation.recalibrated import choose_from_maps, number_fires
from fcer.evaluation.results import Results
from fcer.evaluation.settle import parse_radii
from fcer.evaluation.zone_table import ZoneTables, zone_tables
from fcer.evaluation.zones import fit_family, fit_rules
from fcer.maps.predicted_maps import PredictedMaps, open_maps
from fcer.models.calibration_files import Calibration, calibration_table_file, load_calibration, save_calibration
from fcer.models.members import Member
from fcer.models.student_files import load_student
from fcer.pipeline.calibration_log import tell_calibration
from fcer.pipeline.expected import expectations_of
from fcer.pipeline.scoring import prior_of
from fcer.pipeline.study_data import Say, StudyData
from fcer.pipeline.validation_maps import members_beside, other_maps, validation_maps
from fcer.runtime import doors
from fcer.runtime.sealed_text import is_readable, read_sealed_csv, write_sealed_csv

__all__ = ["calibrate_student", "student_guarantees"]

_METHODS = ("student", "entropy")
"""Zones are compared among methods of one pass: an ensemble's other members have seen the validation fires."""

_OF_ONE_NUMBER: tuple[FamilyName, ...] = ("threshold", "margin")
"""Families that need a probability alone, which every member has."""


def calibrate_student(
    data: StudyData,
    folder: Path,
    misses: Sequence[float],
    say: Say,
    members: Sequence[Member] = (),
    *,
    anew: bool = False,
) -> Calibration | None:
    """The calibration in the student's folder, made where it is not there for these misses.

    Its validation fires calibrate it: those that chose no epoch, where there were enough to keep some apart, else those
    that did, and every zone says so. Where they are fewer than `ENOUGH_FIRES`, zones are calibrated on the validation
    fires of the `members` beside it too, each of which was not trained on its own. None where fires are too few to say
    anything, which is said too.

    With `anew` it is made whatever is there, and where it cannot be, or has no zone, an InputError says why.
    """
    loaded = load_student(folder)
    calibrators = tuple(doors.signed(doors.CALIBRATORS, name) for name in calibrator.installed)
    beside = members_beside(loaded, members)
    there = None if anew else load_calibration(folder, loaded.head.key)
    told = there is not None and is_readable(calibration_table_file(folder), read_sealed_csv, needed=False)
    if there is not None and told and _serves(there, misses, calibrators, beside):
        return there
    prior = prior_of(data.config)
    with ExitStack() as opened:
        try:
            own = opened.enter_context(validation_maps(data, loaded))
            weight = prior.weight if prior.kind == "prior" else None
            choice = choose_from_maps([own], "student", loaded.head.anchor_px, weight)
            several = _with_others(data, own, beside, prior, opened)
            rules = _rules(several, prior, misses, strict=anew)
        except InputError as error:
            if anew:
                raise
            say(f"{folder.name}: not calibrated, since {error}")
            return None
        samples = data.calibration_samples(loaded.head.val_years, apart=loaded.backbone.apart)
        expected = expectations_of(own, samples, loaded, choice.recalibration)
        table = held_out_rows(own, "student", choice, parse_radii(data.config.radii))
        fires = tuple(map(str, number_fires(own)[0]))
    calibration = Calibration(
        student=loaded.head.key,
        recalibration=choice.recalibration,
        zone_prior=prior,
        rules=rules,
        radius_px=loaded.head.anchor_px,
        fires=fires,
        chose_epoch=not loaded.backbone.apart,
        code_version=__version__,
        expected=expected,
        calibrators=calibrators,
    )
    write_sealed_csv(calibration_table_file(folder), table)
    save_calibration(folder, calibration)
    tell_calibration(say, folder.name, calibration, choice, misses)
    return calibration


def student_guarantees(
    data: StudyData,
    students: Sequence[tuple[Path, Sequence[Member]]],
    test_files: Sequence[Path],
    results: Results,
) -> Guarantees | None:
    """What the calibrations of the years' students, which `predict` applies, promise and keep on the test years.

    Each student comes with the members that taught it.
    """
    config, prior = data.config, prior_of(data.config)
    found = []
    for (folder, members), file in zip(students, test_files, strict=True):
        loaded = load_student(folder)
        calibration = load_calibration(folder, loaded.head.key)
        if calibration is None or not calibration.rules:
            continue
        with ExitStack() as opened:
            test = opened.enter_context(open_maps(file))
            own = opened.enter_context(validation_maps(data, loaded))
            several = _with_others(data, own, members_beside(loaded, members), prior, opened)
            methods = [name for name in _METHODS if name in test.methods]
            how: Any = {"misses": config.miss, "n_draws": config.bootstrap, "seed": config.seed}
            how["recalibrations"] = dict.fromkeys(methods, prior)
            others = [family for family in FAMILIES if family not in _OF_ONE_NUMBER]
            of_all = zone_tables(several, test, methods, families=_OF_ONE_NUMBER, **how)
            zones = ZoneTables.join([of_all, zone_tables([own], test, methods, families=others, **how)])
            radii = list(results.sweep["radius_px"].unique())
            rows = calibration_rows(test, {"student": calibration.recalibration}, radii, "validation")
            found.append(Guarantees(zones, rows))
    return Guarantees.join(found)


def _serves(there: Calibration, misses: Sequence[float], calibrators: Sequence[str], beside: Sequence[Member]) -> bool:
    """Whether a calibration that was made before says all that is asked for, from as many fires as there are."""
    zones = there.rules_of("threshold")
    if not zones or not set(calibrators) <= set(there.calibrators):
        return False
    if there.expected is None and len(there.fires) >= 2:  # an older version promised nothing that is tested
        return False
    n_fires = zones[0].n_fires
    all_fires = n_fires >= ENOUGH_FIRES or zones[0].cross_bound is not None or not beside
    return all_fires and {rule.miss for rule in zones} >= {miss for miss in misses if miss >= smallest_miss(n_fires)}


def _with_others(
    data: StudyData, own: PredictedMaps, beside: Sequence[Member], prior: Recalibration, opened: ExitStack
) -> list[PredictedMaps]:
    """The student's maps, and where their fires are few those of the members beside it."""
    fires = fit_family([own], "student", "threshold", prior)
    if np.count_nonzero(fires.has_burnt) >= ENOUGH_FIRES:
        return [own]
    return [own, *(opened.enter_context(other_maps(data, member)) for member in beside)]


def _rules(
    several: Sequence[PredictedMaps], prior: Recalibration, misses: Sequence[float], *, strict: bool
) -> tuple[ZoneRule, ...]:
    """Of every family, for each miss that its fires can guarantee; `strict`: at least for one."""
    rules: list[ZoneRule] = []
    refused: dict[float, InputError] = {}
    for family in FAMILIES:
        fires = fit_family(several if family in _OF_ONE_NUMBER else several[:1], "student", family, prior)
        for miss in misses:
            try:
                rules += fit_rules(fires, [miss])
            except InputError as error:  # too few fires for so small a miss; what is there is told
                refused.setdefault(miss, error)
    if strict and not rules:
        raise refused[max(misses)]
    return tuple(rules)

"""`fcer calibrate`: what a student's probabilities mean near the fire, and zones with a guarantee, stored with it."""

from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.deploy.calibrated import guarantee
from fcer.errors import ConfigError, InputError
from fcer.models.calibration_files import calibration_file, load_calibration, save_calibration
from fcer.models.student_files import load_student
from fcer.pipeline.calibration import calibrate_student
from fcer.pipeline.calibration_log import log_calibration
from fcer.pipeline.study_data import StudyData, detection_settings
from fcer.pipeline.validation_maps import members_here
from fcer.registry.calibrations import store_calibration
from fcer.registry.find_student import CHAMPION_URI, find_student
from fcer.runtime.files import scratch_folder
from fcer.verification.adaptation import adapt_zones
from fcer.verification.forecast import find_maps, read_forecast
from fcer.verification.truth import open_truth

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Calibrate on the fires that the student was validated on, and store that with it; or adapt what is stored."""
    config = resolved.config
    if config.online:
        _adapt(resolved)
        return
    with (
        command_run("calibrate", resolved, of=config.model or CHAMPION_URI) as log,
        scratch_folder(config.work, "student") as download,
    ):
        found = find_student(config.model or CHAMPION_URI, download)
        data, loaded = StudyData(config), load_student(found.folder)
        members = members_here(data, loaded)
        if loaded.head.frozen and len(members) < 2:
            print("its ensemble's other members are not in this work folder: its own validation fires calibrate alone")
        try:
            calibration = calibrate_student(data, found.folder, config.miss, print, members, anew=True)
        except InputError as error:
            raise InputError(f"model: {found.identity['uri']} cannot be calibrated: {error}") from error
        assert calibration is not None
        log_calibration(log, found.folder, "calibration")
        log.tags({"fcer.student": calibration.student})
        said = [store_calibration(found, calibration, log.id, config.work)]
        said += [guarantee(rule, calibration.chose_epoch) for rule in calibration.rules_of("threshold")]
        print("\n".join(said))
        log.note("\n".join(f"- {sentence}" for sentence in said))
    print("next: fcer predict with the same --model")


def _adapt(resolved: Resolved) -> None:
    """Move the zones' levels by verified days, and say and log what became of each."""
    config = resolved.config
    if not config.maps or not config.against:
        raise ConfigError("online: zones are adapted to verified days; give --maps and --against")
    with command_run("calibrate", resolved) as log, scratch_folder(config.work, "student") as download:
        found = find_student(config.model or CHAMPION_URI, download)
        before = load_calibration(found.folder, found.identity["student_key"])
        if before is None:
            raise ConfigError(f"model: {found.identity['uri']} has no calibration to adapt; run fcer calibrate first")
        truth = open_truth(config.against, detection_settings(config))
        adapted = adapt_zones(before, map(read_forecast, find_maps(config.maps)), truth)
        save_calibration(found.folder, adapted.calibration)
        log.file(calibration_file(found.folder), "calibration")
        log.tags({"fcer.student": before.student, "fcer.adapted": "online"})
        for miss, levels in adapted.levels.items():
            for day, level in levels.items():
                log.dated({f"adapt/level_{miss:g}": max(level, 0.0)}, day, since=min(levels))
        print(store_calibration(found, adapted.calibration, log.id, config.work))
        for old, new in zip(before.rules_of("threshold"), adapted.calibration.rules_of("threshold"), strict=True):
            print(f"zone for a miss of {new.miss:g}: level {old.level:.3g} before, {new.level:.3g} now")
            print(guarantee(new, adapted=adapted.calibration.adapted))
    print("next: fcer predict with the same --model")

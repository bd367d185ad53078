"""`fcer calibrate`: what a student's probabilities mean near the fire, and zones with a guarantee, stored with it."""

from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.deploy.calibrated import guarantee
from fcer.errors import FcerError
from fcer.models.calibration_files import calibration_file
from fcer.pipeline.calibration import calibrate_student
from fcer.pipeline.study_data import StudyData
from fcer.registry.calibrations import store_calibration
from fcer.registry.find_student import CHAMPION_URI, find_student
from fcer.runtime.files import scratch_folder

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Calibrate on the fires that the student was validated on, and store that with it."""
    config = resolved.config
    with (
        command_run("calibrate", resolved, of=config.model or CHAMPION_URI) as log,
        scratch_folder(config.work, "student") as download,
    ):
        found = find_student(config.model or CHAMPION_URI, download)
        calibration_file(found.folder).unlink(missing_ok=True)
        calibration = calibrate_student(StudyData(config), found.folder, config.miss, print)
        if calibration is None:
            raise FcerError(f"model: {found.identity['uri']} could not be calibrated; see the line above")
        log.file(calibration_file(found.folder), "calibration")
        log.tags({"fcer.student": calibration.student})
        said = [store_calibration(found, calibration, log.id, config.work)]
        said += [guarantee(rule, calibration.chose_epoch) for rule in calibration.rules_of("threshold")]
        print("\n".join(said))
        log.note("\n".join(f"- {sentence}" for sentence in said))
    print("next: fcer predict with the same --model")

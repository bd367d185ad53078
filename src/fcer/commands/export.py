"""`fcer export`: the student as an ONNX file, which runs without torch and without fcer."""

import numpy as np
from numpy.typing import NDArray

from fcer.commands.tracked import command_run
from fcer.config import Config, Resolved
from fcer.data.catalog import open_fires
from fcer.data.channels import CHANNELS
from fcer.deploy.onnx_file import TOLERANCE, export_student, import_onnx
from fcer.errors import DataError
from fcer.models.calibration_files import load_calibration
from fcer.models.onnx_graph import OPSET
from fcer.models.student_files import LoadedStudent, load_student
from fcer.registry.find_student import CHAMPION_URI, find_student
from fcer.runtime.files import scratch_folder
from fcer.runtime.work import Work

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Find the student, write the file, and say how near it is to torch."""
    config = resolved.config
    path = config.onnx or Work(config.work).exported
    import_onnx()  # better said before a run begins
    with (
        command_run("export", resolved, of=config.model or CHAMPION_URI) as log,
        scratch_folder(config.work, "student") as download,
    ):
        found = find_student(config.model or CHAMPION_URI, download)
        loaded = load_student(found.folder)
        calibration = load_calibration(found.folder, loaded.head.key)
        real = _real_days(config, loaded)
        difference = export_student(path, loaded, calibration, found.identity, real)
        log.tags({"fcer.student": loaded.head.key})
        log.metrics({"export/difference": difference, "export/bytes": path.stat().st_size})
        held = "random days" if real is None else f"random days and those of {config.input}"
        told = f"{path}: ONNX opset {OPSET}, at most {difference:.1e} from torch on {held} (allowed: {TOLERANCE:g})"
        log.note(told)
        print(told)
        if calibration is None:
            print("it is not calibrated: run fcer calibrate first for calibrated_probability and zone")


def _real_days(config: Config, loaded: LoadedStudent) -> NDArray[np.float32] | None:
    """The latest days of the first fire that was named."""
    if config.input is None:
        return None
    catalog = open_fires(config.input)
    if not catalog.fires:
        raise DataError(f"{config.input}: no fire of it can be read; give --input another, or leave it out")
    fire = catalog.fires[0]
    return fire.read(fire.latest_days(loaded.student.backbone.days), range(len(CHANNELS)))[None]

"""Calibrations of registered students: a file among the model's own, so that whoever loads or serves it has it."""

from pathlib import Path

import mlflow
from mlflow.exceptions import MlflowException

from fcer.models.calibration_files import Calibration, save_calibration
from fcer.registry.find_student import FoundStudent, fetch_artifact, student_path
from fcer.runtime.files import scratch_folder
from fcer.tracking.server import failed

__all__ = ["CALIBRATED_BY", "store_calibration"]

CALIBRATED_BY = "fcer.calibrated_by"
"""The tag of a version that names the run which calibrated it last."""


def store_calibration(found: FoundStudent, calibration: Calibration, run_id: str, work: Path) -> str:
    """Store it with the registered version, whose earlier one it replaces, or leave it in the student's own folder."""
    if "version" not in found.identity:
        return f"stored in {found.folder}"
    name, version = found.identity["name"], found.identity["version"]
    client = mlflow.MlflowClient()
    uri = f"models:/{name}/{version}"
    with scratch_folder(work, "calibration") as scratch:
        inside = student_path(uri, fetch_artifact(uri, "MLmodel", scratch))
        (files := scratch / "files").mkdir()
        save_calibration(files / inside, calibration)
        try:
            client.log_model_artifacts(client.get_model_version(name, version).tags["model_id"], str(files))
            client.set_model_version_tag(name, version, CALIBRATED_BY, run_id)
        except (MlflowException, OSError) as error:
            raise failed(error) from error
    return f"stored with version {version} of {name}; `fcer serve` takes it up, other servers when started again"

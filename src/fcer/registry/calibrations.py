"""Calibrations of registered students: a tag of the version holds the one that counts, with its checksum."""

import mlflow

from fcer.models.calibration_files import Calibration, calibration_text
from fcer.registry.find_student import CALIBRATION_TAG, FoundStudent

__all__ = ["store_calibration"]


def store_calibration(found: FoundStudent, calibration: Calibration, run_id: str) -> str:
    """Store it with the registered version, whose earlier one it replaces, or leave it in the student's own folder."""
    if "version" not in found.identity:
        return f"stored in {found.folder}"
    name, version = found.identity["name"], found.identity["version"]
    client = mlflow.MlflowClient()
    client.set_model_version_tag(name, version, CALIBRATION_TAG, calibration_text(calibration))
    client.set_model_version_tag(name, version, "fcer.calibrated_by", run_id)
    return f"stored with version {version} of {name}"

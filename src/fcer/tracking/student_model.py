"""A student as an MLflow model, registered under one name; the first becomes `champion`."""

import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import mlflow
import numpy as np
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.models.model import ModelInfo
from mlflow.models.signature import ModelSignature
from mlflow.types.schema import DataType, ParamSchema, ParamSpec, Schema, TensorSpec

import fcer
from fcer.models.raw_days import needed_channels
from fcer.models.student_files import LoadedStudent, load_student, read_head_info

__all__ = ["CHAMPION", "REGISTERED", "log_student"]

REGISTERED = "fcer-student"
CHAMPION = "champion"

_PACKAGES = ("mlflow", "torch", "numpy", "safetensors", "scipy", "tqdm")
"""What loading the model needs besides this package, which travels with it."""


def log_student(run_id: str, folder: Path, metrics: Mapping[str, float]) -> None:
    """Log the student in `folder` to the run and register it, once; where there is no `champion`, it becomes that."""
    client = mlflow.MlflowClient()
    registered = _find(client, run_id, read_head_info(folder).key) or _log_and_register(client, run_id, folder, metrics)
    if CHAMPION not in client.get_registered_model(REGISTERED).aliases:
        client.set_registered_model_alias(REGISTERED, CHAMPION, registered.version)


def _find(client: mlflow.MlflowClient, run_id: str, key: str) -> ModelVersion | None:
    """The version that a run has of a student: where only the answer was lost, it is there."""
    versions = client.search_model_versions(f"name = '{REGISTERED}' and run_id = '{run_id}'")
    return next((version for version in versions if version.tags.get("key") == key), None)


def _log_and_register(
    client: mlflow.MlflowClient, run_id: str, folder: Path, metrics: Mapping[str, float]
) -> ModelVersion:
    loaded = load_student(folder)
    with warnings.catch_warnings():
        # The signature is ours: an example that MLflow would derive one from is not needed
        warnings.filterwarnings("ignore", message=".*input example.*")
        info = _log_model(client, run_id, folder, loaded)
    for name, value in metrics.items():
        client.log_metric(run_id, f"student/{name}", value, model_id=info.model_id)
    return _register(client, info, run_id, {**_metadata(loaded), **{k: str(value) for k, value in metrics.items()}})


def _log_model(client: mlflow.MlflowClient, run_id: str, folder: Path, loaded: LoadedStudent) -> ModelInfo:
    run = client.get_run(run_id)
    # By itself MLflow would put it into the default experiment, as the run is not the active one
    model = client.create_logged_model(run.info.experiment_id, "student", run_id, params=run.data.params)
    logged: ModelInfo = Model.log(
        artifact_path=None,
        name=model.name,
        model_id=model.model_id,
        flavor=mlflow.pyfunc,
        run_id=run_id,
        python_model=str(Path(__file__).with_name("served_student.py")),
        artifacts={"student": str(folder)},
        code_paths=[str(Path(fcer.__file__).parent)],
        pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in _PACKAGES],
        signature=_signature(),
        metadata=_metadata(loaded),
    )
    return logged


def _signature() -> ModelSignature:
    """Raw days of any number and size in; one map of each kind out.

    The number of days is left open, though a student has but one: then the empty `inputs` beside a .npy file are the
    same for every student, and a wrong number is answered with the student's own sentence.
    """
    number = np.dtype(np.float32)
    maps = Schema([TensorSpec(number, (-1, -1, -1), name) for name in ("probability", "uncertainty")])
    npy = ParamSpec("npy", DataType.string, default=None)
    return ModelSignature(Schema([TensorSpec(number, (-1,) * 5)]), maps, ParamSchema([npy]))


def _metadata(loaded: LoadedStudent) -> dict[str, str]:
    """What whoever calls the model should know."""
    channels = ", ".join(map(str, needed_channels(loaded)))
    return {
        "input": f"raw days (samples, {loaded.student.backbone.days}, channels, rows, columns): all 23 raw channels "
        f"of WildfireSpreadTS, or {channels} alone; standardised inside, NaN where a value is missing",
        "output": "probability: of fire tomorrow; uncertainty: 0 to 1",
        "npy": "instead of inputs (then [[[[[]]]]]): the days as a base64 .npy file; the maps come back as such files",
        "arch": loaded.backbone.arch,
        "train_years": ", ".join(map(str, loaded.backbone.train_years)),
        "test_years": ", ".join(map(str, loaded.backbone.test_years)),
        "key": loaded.head.key,
    }


def _register(client: mlflow.MlflowClient, logged: ModelInfo, run_id: str, tags: Mapping[str, str]) -> ModelVersion:
    try:
        client.create_registered_model(
            REGISTERED, description="Next-day fire probability and its uncertainty in one pass"
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    # With its tags in one call: a version without them could not be told from another student's
    return client.create_model_version(REGISTERED, logged.model_uri, run_id, dict(tags), model_id=logged.model_id)

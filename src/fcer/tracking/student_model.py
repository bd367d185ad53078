"""A student as an MLflow model, registered under one name; the first becomes `champion`.

The first of those that read the fire alone, as detections tell it, becomes `champion-fire` too.
"""

import json
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import mlflow
import numpy as np
from mlflow.entities import LoggedModelOutput, Metric
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.models.model import ModelInfo
from mlflow.models.signature import ModelSignature
from mlflow.types.schema import DataType, ParamSchema, ParamSpec, Schema, TensorSpec
from mlflow.utils.mlflow_tags import MLFLOW_MODEL_VERSIONS, MLFLOW_RUN_NOTE
from numpy.typing import NDArray

import fcer
from fcer.data.channels import ACTIVE_FIRE
from fcer.models.calibration_files import calibration_file, load_calibration
from fcer.models.raw_days import needed_channels
from fcer.models.student_files import LoadedStudent, load_student, read_fire_scores, read_head_info
from fcer.tracking.model_card import model_card

__all__ = [
    "BY_FIRE",
    "CHAMPION",
    "CHANNELS_READ",
    "FIRE_CHAMPION",
    "REGISTERED",
    "REGISTERED_AS",
    "find_version",
    "kind_of_champion",
    "log_student",
]

REGISTERED = "fcer-student"
CHAMPION = "champion"
FIRE_CHAMPION = "champion-fire"
"""Of students that read the fire alone: others cannot forecast what detections tell."""
CHANNELS_READ = "channels"
"""The version's tag that lists the raw channels which its student reads."""
REGISTERED_AS = "fcer.registered"
"""The run's tag that says which version its student is: an earlier run may have registered the same."""
BY_FIRE = "val_by_fire"
"""The version's tag that holds validation scores by fire: {fire: {score: value}} as JSON."""
_MODEL_ID = "model_id"
"""The version's tag that names its logged model: MLflow itself does not tell when it is asked for versions."""

_PACKAGES = ("mlflow", "torch", "numpy", "safetensors", "scipy", "tqdm")
"""What loading the model needs besides this package, which travels with it."""

_ONE_AT_A_TIME = threading.Lock()
"""While MLflow reads a model's code it puts a mock module into the process; of two at once it leaves one there."""


def log_student(run_id: str, folder: Path, metrics: Mapping[str, float], at: int | None = None) -> None:
    """Log the student in `folder` to the run and register it; where there is no `champion`, it becomes that.

    It is registered once, by its key: a run that finds it registered points to that model. Whoever else registers it
    at the same moment, the lowest version is the one that stays. `at` is when it happened, in milliseconds since 1970;
    now where not given.
    """
    client = mlflow.MlflowClient()
    now = int(time.time() * 1000)
    key = read_head_info(folder).key
    registered = find_version(client, key)
    if registered is None:
        _log_and_register(client, run_id, folder, metrics)
        registered = _settle(client, key)
    _link(client, run_id, registered, {f"student/{name}": value for name, value in metrics.items()}, at or now)
    aliases = client.get_registered_model(REGISTERED).aliases
    for alias in {CHAMPION, kind_of_champion(registered)} - aliases.keys():
        client.set_registered_model_alias(REGISTERED, alias, registered.version)


def kind_of_champion(version: ModelVersion) -> str:
    """The alias that a version can be promoted to: students of other inputs are no rivals."""
    return FIRE_CHAMPION if version.tags.get(CHANNELS_READ) == str(ACTIVE_FIRE) else CHAMPION


def find_version(client: mlflow.MlflowClient, key: str) -> ModelVersion | None:
    """The version that a student of this key is registered as."""
    return next(iter(_versions(client, key)), None)


def _versions(client: mlflow.MlflowClient, key: str) -> list[ModelVersion]:
    """All versions of a student, the first one first."""
    found = client.search_model_versions(f"name = '{REGISTERED}' and tags.key = '{key}'")
    return sorted(found, key=lambda version: int(version.version))


def _settle(client: mlflow.MlflowClient, key: str) -> ModelVersion:
    """Keep one version of a student that several commands have registered at once: all of them keep the same."""
    first, *others = _versions(client, key)
    for other in others:
        with suppress(MlflowException):  # another has removed it already
            client.delete_model_version(REGISTERED, other.version)
            client.delete_logged_model(other.tags[_MODEL_ID])
    return first


def _link(
    client: mlflow.MlflowClient, run_id: str, registered: ModelVersion, scores: Mapping[str, float], at: int
) -> None:
    """Show the model on the page of the run, and what speaks for it on both."""
    client.set_tag(run_id, REGISTERED_AS, f"models:/{REGISTERED}/{registered.version}")
    model_id = registered.tags.get(_MODEL_ID)
    if model_id:
        shown = client.get_run(run_id).outputs
        if model_id not in [one.model_id for one in (shown.model_outputs if shown else ())]:
            client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        versions = json.dumps([{"name": REGISTERED, "version": registered.version}])
        # Else the model's page calls it not registered
        client.set_logged_model_tags(model_id, {MLFLOW_MODEL_VERSIONS: versions})
    data = _validated_on(client, run_id)
    client.log_batch(run_id, metrics=[Metric(name, value, at, 0, model_id, *data) for name, value in scores.items()])


def _validated_on(client: mlflow.MlflowClient, run_id: str) -> tuple[str | None, str | None]:
    """Name and digest of the data behind a student's scores, so that the model's page shows them."""
    inputs = client.get_run(run_id).inputs
    for one in inputs.dataset_inputs if inputs else ():
        if "validation" in [tag.value for tag in one.tags]:
            return one.dataset.name, one.dataset.digest
    return None, None


def _log_and_register(client: mlflow.MlflowClient, run_id: str, folder: Path, metrics: Mapping[str, float]) -> None:
    loaded = load_student(folder)
    with warnings.catch_warnings():
        # The signature is ours: an example that MLflow would derive one from is not needed
        warnings.filterwarnings("ignore", message=".*input example.*")
        info = _log_model(client, run_id, folder, loaded)
    scores = {name: str(value) for name, value in metrics.items()}
    tags = {**_metadata(loaded), **scores, **_by_fire(folder), _MODEL_ID: info.model_id}
    inputs = client.get_run(run_id).inputs
    data = {one.tags[0].value: one.dataset.name for one in (inputs.dataset_inputs if inputs else ()) if one.tags}
    card = model_card(loaded, metrics, data, run_id, load_calibration(folder, loaded.head.key))
    client.set_logged_model_tags(info.model_id, {MLFLOW_RUN_NOTE: card})
    _register(client, info, run_id, tags, card)


def _by_fire(folder: Path) -> dict[str, str]:
    """The validation scores of each fire, where the student's folder has them: promotions are decided by pairs."""
    scores = read_fire_scores(folder)
    return {} if scores is None else {BY_FIRE: json.dumps(scores)}


def _log_model(client: mlflow.MlflowClient, run_id: str, folder: Path, loaded: LoadedStudent) -> ModelInfo:
    run = client.get_run(run_id)
    # By itself MLflow would put it into the default experiment, as the run is not the active one
    model = client.create_logged_model(run.info.experiment_id, "student", run_id, params=run.data.params)
    with _ONE_AT_A_TIME:
        logged: ModelInfo = Model.log(
            artifact_path=None,
            name=model.name,
            model_id=model.model_id,
            flavor=mlflow.pyfunc,
            # Not told of the run: else all of the run's metrics, the machine's too, would become the model's
            python_model=str(Path(__file__).with_name("served_student.py")),
            artifacts={"student": str(folder)},
            code_paths=[str(Path(fcer.__file__).parent)],
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in _PACKAGES],
            signature=_signature(calibration_file(folder).exists()),
            input_example=_example(loaded),
            metadata=_metadata(loaded),
        )
    return logged


def _example(loaded: LoadedStudent) -> NDArray[np.float32]:
    """One sample of the channels that the student needs, small: nothing measured, and a fire in the middle."""
    days = np.zeros((1, loaded.student.backbone.days, len(needed_channels(loaded)), 32, 32), np.float32)
    days[..., -1, 14:18, 14:18] = 12.0  # the hour of its detection
    return days


def _signature(calibrated: bool) -> ModelSignature:
    """Raw days of any number and size in; one map of each kind out.

    The number of days is left open, though a student has but one: then the empty `inputs` beside a .npy file are the
    same for every student, and a wrong number is answered with the student's own sentence.
    """
    number = np.dtype(np.float32)
    names = ("probability", "uncertainty", *(("calibrated_probability", "zone") if calibrated else ()))
    maps = Schema([TensorSpec(number, (-1, -1, -1), name) for name in names])
    npy = ParamSpec("npy", DataType.string, default=None)
    return ModelSignature(Schema([TensorSpec(number, (-1,) * 5)]), maps, ParamSchema([npy]))


def _metadata(loaded: LoadedStudent) -> dict[str, str]:
    """What whoever calls the model should know."""
    channels = ", ".join(map(str, needed_channels(loaded)))
    return {
        "input": f"raw days (samples, {loaded.student.backbone.days}, channels, rows, columns): all 23 raw channels "
        f"of WildfireSpreadTS, or {channels} alone; standardised inside, NaN where a value is missing",
        "output": "probability: of fire tomorrow; uncertainty: 0 to 1; of a calibrated student also "
        "calibrated_probability, zone (the expected miss of the smallest zone that holds the pixel, 0 where none does) "
        "and guarantees, what the zones promise",
        "npy": "instead of inputs (then [[[[[]]]]]): the days as a base64 .npy file; the maps come back as such files",
        "arch": loaded.backbone.arch,
        "train_years": ", ".join(map(str, loaded.backbone.train_years)),
        "test_years": ", ".join(map(str, loaded.backbone.test_years)),
        CHANNELS_READ: channels,
        "key": loaded.head.key,
    }


def _register(client: mlflow.MlflowClient, logged: ModelInfo, run_id: str, tags: Mapping[str, str], card: str) -> None:
    try:
        client.create_registered_model(
            REGISTERED, description="Next-day fire probability and its uncertainty in one pass"
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    # With its tags in one call: a version without them could not be told from another student's
    client.create_model_version(
        REGISTERED, logged.model_uri, run_id, dict(tags), description=card, model_id=logged.model_id
    )

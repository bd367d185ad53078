"""Students in MLflow: by their name in the registry or by their run, on disk to be loaded from their weights alone.

Of a logged model nothing but the two files of weights is fetched, and none of the code that travels with it is run.
"""

import re
from collections.abc import Set
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import mlflow
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

from fcer.config.bounded import read_yaml
from fcer.errors import ConfigError
from fcer.models.calibration_files import calibration_file
from fcer.models.student_files import backbone_file, head_file, read_head_info
from fcer.tracking.server import ABSENT, failed, prepare_client, tracking_uri
from fcer.tracking.student_model import CHAMPION, CHANNELS_READ, FIRE_CHAMPION, REGISTERED, REGISTERED_AS

__all__ = ["CHAMPION_URI", "FoundStudent", "champion_for", "fetch_artifact", "find_student", "student_path"]

CHAMPION_URI = f"models:/{REGISTERED}@{CHAMPION}"

# A version has at most as many digits as databases hold
_NAMED = re.compile(r"models:/(?P<name>[^/@:]+)(?:@(?P<alias>[^/@]+)|/(?P<version>\d{1,9}))")
_RUN = re.compile(r"(?:runs:/)?(?P<run>[0-9a-f]{32})(?:/(?P<path>.+))?")
_FORMS = f"{CHAMPION_URI}, models:/{REGISTERED}/1, runs:/ID, the id of a run, or a student's folder"


class FoundStudent(NamedTuple):
    """A student on disk, and what is known of it."""

    folder: Path
    identity: dict[str, str]
    """uri, student_key and code_version; of a logged one run_id; of a registered one name and version."""


def champion_for(channels: Set[int]) -> str | None:
    """The address of the champion of fires that have these raw channels; None where there is no champion at all.

    `champion` where it reads no other channel, else `champion-fire` where there is one.
    """
    prepare_client()
    client = mlflow.MlflowClient()
    try:
        known = client.get_registered_model(REGISTERED).aliases
        aliases = [alias for alias in (CHAMPION, FIRE_CHAMPION) if alias in known]
        for alias in aliases:
            said = client.get_model_version_by_alias(REGISTERED, alias).tags.get(CHANNELS_READ, "")
            if {int(channel) for channel in re.findall(r"\d+", said)} <= channels:
                return f"models:/{REGISTERED}@{alias}"
    except MlflowException as error:
        if error.error_code in ABSENT:
            return None
        raise failed(error) from error
    return CHAMPION_URI if aliases else None


def find_student(model: str, into: Path) -> FoundStudent:
    """The student that `model` names: a folder as it is, any other downloaded `into` an empty folder."""
    if Path(model).is_dir():
        return _described(Path(model), {"uri": model})
    prepare_client()
    client = mlflow.MlflowClient()
    try:
        if named := _NAMED.fullmatch(model):
            registered = _registered(client, named)
        elif run := _RUN.fullmatch(model):
            registered = _of_run(client, model, run)
        else:
            raise ConfigError(f"model: {model!r} is neither a folder nor a model's address; give {_FORMS}")
    except MlflowException as error:
        if error.error_code in ABSENT:
            raise ConfigError(
                f"model: {tracking_uri()} has no {model}; fcer distill registers one, or set MLFLOW_TRACKING_URI"
            ) from None
        raise failed(error) from error
    known = {"name": registered.name, "version": str(registered.version), "run_id": str(registered.run_id or "")}
    folder = _downloaded(f"models:/{registered.name}/{registered.version}", into)
    return _described(folder, {"uri": model, **known})


def _registered(client: mlflow.MlflowClient, named: re.Match[str]) -> ModelVersion:
    if named["alias"]:
        return client.get_model_version_by_alias(named["name"], named["alias"])
    return client.get_model_version(named["name"], named["version"])


def _of_run(client: mlflow.MlflowClient, model: str, run: re.Match[str]) -> ModelVersion:
    """The one student that a run has registered."""
    known = client.get_run(run["run"])
    run_id = known.info.run_id
    if run["path"] not in (None, "student"):
        raise ConfigError(f"model: students are logged as runs:/{run_id}/student, not {model}; give runs:/{run_id}")
    versions = client.search_model_versions(f"run_id = '{run_id}'")
    if not versions and (earlier := _NAMED.fullmatch(known.data.tags.get(REGISTERED_AS, ""))):
        return _registered(client, earlier)
    if not versions:
        raise ConfigError(f"model: the run {run_id} has registered no student; give a run of fcer distill or search")
    if len({version.tags.get("key") for version in versions}) > 1:
        several = ", ".join(sorted(f"models:/{version.name}/{version.version}" for version in versions))
        raise ConfigError(f"model: the run {run_id} has registered several students; give one of {several}")
    return versions[0]


def _downloaded(uri: str, into: Path) -> Path:
    """The student's two files of weights, by names of ours: nothing that a server says decides where they lie."""
    there = fetch_artifact(uri, "MLmodel", into)
    inside = student_path(uri, there)
    folder = into / "student"
    folder.mkdir()
    for target in (backbone_file(folder), head_file(folder)):
        fetch_artifact(uri, f"{inside}/{target.name}", into).rename(target)
    inside_it = {PurePosixPath(file.path).name for file in mlflow.artifacts.list_artifacts(f"{uri}/{inside}") or ()}
    if (calibration := calibration_file(folder)).name in inside_it:
        fetch_artifact(uri, f"{inside}/{calibration.name}", into).rename(calibration)
    return folder


def student_path(uri: str, mlmodel: Path) -> PurePosixPath:
    """Where in the model the student's folder lies."""
    try:
        said = read_yaml(mlmodel)
        path = PurePosixPath(said["flavors"]["python_function"]["artifacts"]["student"]["path"])
    except (ConfigError, KeyError, TypeError):
        raise ConfigError(f"model: {uri} is no student of fcer; give {_FORMS}") from None
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"model: {uri} says that its weights lie outside of it, at {path}; register it again")
    return path


def fetch_artifact(uri: str, path: str, into: Path) -> Path:
    """One file of a logged model, in a folder."""
    try:
        fetched = mlflow.artifacts.download_artifacts(f"{uri}/{path}", dst_path=str(into))
    except (MlflowException, OSError) as error:
        raise failed(error) from error
    return Path(fetched)


def _described(folder: Path, identity: dict[str, str]) -> FoundStudent:
    info = read_head_info(folder)
    return FoundStudent(folder, {**identity, "student_key": info.key, "code_version": info.code_version})

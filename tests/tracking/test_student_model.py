"""A student in MLflow's registry: each once, with its tags, and always a champion."""

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest

from fcer.tracking.student_model import CHAMPION, REGISTERED, log_student
from student_cases import write_student

SCORES = {"val_auroc": 0.7}


@pytest.fixture
def client(store: str) -> mlflow.MlflowClient:
    return mlflow.MlflowClient(store, store)


@pytest.fixture
def new_run(client: mlflow.MlflowClient) -> Callable[[], str]:
    found = client.get_experiment_by_name("students")
    experiment = found.experiment_id if found else client.create_experiment("students")
    return lambda: client.create_run(experiment).info.run_id


def keys_of(client: mlflow.MlflowClient, run_id: str) -> list[str]:
    return sorted(version.tags["key"] for version in client.search_model_versions(f"run_id = '{run_id}'"))


def test_a_run_registers_each_of_its_students_once(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path
):
    run_id = new_run()
    for key in ("first", "first", "second", "first"):
        log_student(run_id, write_student(tmp_path / key, key), SCORES)
    assert keys_of(client, run_id) == ["first", "second"]


def test_the_model_lies_in_the_experiment_of_its_run(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path
):
    run_id = new_run()
    client.log_param(run_id, "head_lr", 0.01)
    log_student(run_id, write_student(tmp_path / "student", "placed"), SCORES)
    run = client.get_run(run_id)
    (output,) = run.outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (model.experiment_id, model.source_run_id) == (run.info.experiment_id, run_id)
    assert (model.name, model.status, model.params) == ("student", "READY", {"head_lr": "0.01"})
    assert {metric.key: metric.value for metric in model.metrics} == {"student/val_auroc": 0.7}


def test_a_server_lost_after_registering_is_made_up_for(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run_id, folder = new_run(), write_student(tmp_path / "student", "lost")
    for version in client.search_model_versions(f"name = '{REGISTERED}'"):
        client.delete_model_version(REGISTERED, version.version)
    real = mlflow.MlflowClient.create_model_version

    def register_and_go(*given: object, **named: object) -> None:
        real(*given, **named)
        raise ConnectionError("the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "create_model_version", register_and_go)
        with pytest.raises(ConnectionError):
            log_student(run_id, folder, SCORES)
    assert CHAMPION not in client.get_registered_model(REGISTERED).aliases
    log_student(run_id, folder, SCORES)
    assert keys_of(client, run_id) == ["lost"]
    champion = client.get_model_version_by_alias(REGISTERED, CHAMPION)
    assert champion.run_id == run_id
    assert champion.tags.items() >= {"key": "lost", "val_auroc": "0.7", "test_years": "2021"}.items()

"""A student in MLflow's registry: each once, with its tags, and always a champion."""

import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mlflow
import pytest

from fcer.models.student_files import load_student
from fcer.tracking.model_card import model_card
from fcer.tracking.student_model import CHAMPION, REGISTERED, log_student
from student_cases import write_student

SCORES = {"val_auroc": 0.7}
AT = 1_700_000_000_000


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
        log_student(run_id, write_student(tmp_path / key, key), SCORES, AT)
    assert keys_of(client, run_id) == ["first", "second"]
    assert len(client.get_metric_history(run_id, "student/val_auroc")) == 1, "told again, it is the same point"


def versions_of(client: mlflow.MlflowClient, key: str) -> list[str]:
    return [version.version for version in client.search_model_versions(f"tags.key = '{key}'")]


def test_a_student_is_registered_once_whichever_runs_bring_it(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Killed while it uploads, started again, and the killed one's journal logged later."""
    killed, again = new_run(), new_run()
    folder = write_student(tmp_path / "student", "uploaded")

    def kill(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_model_artifacts", kill)
        with pytest.raises(KeyboardInterrupt):
            log_student(killed, folder, SCORES, AT)
    for run_id in (again, killed):
        log_student(run_id, folder, SCORES, AT)
    (version,) = versions_of(client, "uploaded")
    runs = [client.get_run(run_id) for run_id in (killed, again)]
    assert {run.data.tags["fcer.registered"] for run in runs} == {f"models:/{REGISTERED}/{version}"}
    outputs = [{output.model_id for output in run.outputs.model_outputs} for run in runs]
    assert outputs[0] & outputs[1], "both runs show the model"


def test_the_same_student_registered_at_once_is_one_version(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path
):
    folder, runs = write_student(tmp_path / "student", "crowded"), [new_run() for _ in range(3)]
    together = threading.Barrier(3)
    real = mlflow.MlflowClient.create_model_version

    def register(self: mlflow.MlflowClient, *given: object, **named: object) -> object:
        together.wait()
        return real(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as pool:
        patch.setattr(mlflow.MlflowClient, "create_model_version", register)
        list(pool.map(lambda run_id: log_student(run_id, folder, SCORES, AT), runs))
    (version,) = versions_of(client, "crowded")
    named = {client.get_run(run_id).data.tags["fcer.registered"] for run_id in runs}
    assert named == {f"models:/{REGISTERED}/{version}"}
    assert "dbutils" not in sys.modules, "MLflow's mock of a module is gone"


def test_a_model_says_that_it_is_registered_and_has_a_card(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path
):
    run_id, folder = new_run(), write_student(tmp_path / "student", "carded")
    client.log_metric(run_id, "system/cpu_utilization_percentage", 50.0)
    (folder / "validation.json").write_text('{"fire_1": {"auroc": 0.75}}')
    log_student(run_id, folder, {**SCORES, "val_auroc_low": 0.6, "val_auroc_high": 0.8}, AT)
    (output,) = client.get_run(run_id).outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    (version,) = client.search_model_versions("tags.key = 'carded'")
    assert json.loads(model.tags["mlflow.modelVersions"]) == [{"name": REGISTERED, "version": version.version}]
    assert not [metric.key for metric in model.metrics if metric.key.startswith("system/")]
    assert "validation AUROC 0.700 (95 %: 0.600 to 0.800 over draws of fires)" in version.description
    assert f"run `{run_id}`" in version.description and "2 members" in version.description
    assert model.tags["mlflow.note.content"] == version.description
    assert json.loads(version.tags["val_by_fire"]) == {"fire_1": {"auroc": 0.75}}


def test_a_card_of_a_student_that_holds_nothing_out_says_that_its_skill_is_cross_validated(tmp_path: Path):
    card = model_card(load_student(write_student(tmp_path / "student", "all")), {**SCORES, "cv_ap": 0.412}, {}, "run")
    assert "cross-validated, since nothing was held out to test on: AP 0.412 as mean of its teachers" in card


def test_the_model_lies_in_the_experiment_of_its_run(
    client: mlflow.MlflowClient, new_run: Callable[[], str], tmp_path: Path
):
    run_id = new_run()
    client.log_param(run_id, "head_lr", 0.01)
    log_student(run_id, write_student(tmp_path / "student", "placed"), SCORES, AT)
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
            log_student(run_id, folder, SCORES, AT)
    assert CHAMPION not in client.get_registered_model(REGISTERED).aliases
    log_student(run_id, folder, SCORES, AT)
    assert keys_of(client, run_id) == ["lost"]
    champion = client.get_model_version_by_alias(REGISTERED, CHAMPION)
    assert champion.run_id == run_id
    assert champion.tags.items() >= {"key": "lost", "val_auroc": "0.7", "test_years": "2021"}.items()

"""A student in MLflow's registry: each once, with its tags, and always a champion."""

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest
import torch

from backbone_cases import small_backbone
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, save_student
from fcer.tracking.student_model import CHAMPION, REGISTERED, log_student

SCORES = {"val_auroc": 0.7}


def write_student(folder: Path, key: str) -> Path:
    backbone = small_backbone("utae_t5")
    torch.manual_seed(0)
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    years = {"train_years": (2018, 2019), "val_years": (2020,), "test_years": (2021,)}
    scaling = {"features": (3, 38, 39), "mean": (0.0,) * 23, "std": (1.0,) * 23}
    origin = {"dataset_fingerprint": "f", "code_version": "0"}
    spec = backbone.spec
    below = CheckpointInfo(spec.arch, spec.channels, spec.width, fold=0, val_ap=0.5, **years, **scaling, **origin)
    fitted = {"loss": "rmsle", "target": "std", "frozen": True, "anchor_px": 4.0, "val_auroc": 0.7, "epoch": 3}
    info = HeadInfo(head.spec.features, (), False, backbone="", teachers=("a", "b"), key=key, **fitted, **origin)
    save_student(folder, backbone, below, head, info)
    return folder


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

"""A checkout that is moved takes its store along, artifacts and models included."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import mlflow
import pytest

from fcer.errors import FcerWarning
from fcer.tracking.first_start import make_store

TEXT = "kept"


def test_artifacts_of_a_moved_store_are_found_again(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    shutil.copy(Path(store.removeprefix("sqlite:///")), before / "mlflow.db")
    monkeypatch.chdir(before)
    client = mlflow.MlflowClient("sqlite:///mlflow.db")
    run = client.create_run(client.create_experiment("moved"))
    client.log_text(run.info.run_id, TEXT, "note.txt")
    before.rename(after)
    monkeypatch.chdir(after)
    uri = f"sqlite:///{after}/mlflow.db"
    with pytest.warns(FcerWarning, match=r"was moved from .*before; the addresses of its artifacts follow"):
        make_store(uri)
    make_store(uri)  # once is enough
    found = mlflow.MlflowClient(uri)
    assert Path(found.download_artifacts(run.info.run_id, "note.txt")).read_text() == TEXT
    written = found.create_run(run.info.experiment_id)
    assert str(after) in written.info.artifact_uri


def test_a_store_whose_artifacts_lie_elsewhere_is_left_alone(store: str, tmp_path: Path):
    path = tmp_path / "mlflow.db"
    shutil.copy(Path(store.removeprefix("sqlite:///")), path)
    with closing(sqlite3.connect(path)) as database:
        content = list(database.iterdump())
        make_store(f"sqlite:///{path}")
        assert list(database.iterdump()) == content

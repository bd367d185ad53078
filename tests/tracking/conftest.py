from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def _store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"


@pytest.fixture
def store(_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A store without a server, which the test's commands log to from an empty folder."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", _store)
    monkeypatch.chdir(tmp_path)
    return _store

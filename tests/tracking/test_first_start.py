"""A fresh store: killed while it is made, or made by several at once, it is whole in the end."""

import multiprocessing
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import mlflow
import pytest

from fcer.errors import FcerError, FcerWarning
from fcer.tracking import first_start
from fcer.tracking.first_start import make_store
from fcer.tracking.server import prepare_client
from mlflow_stores import fresh_store

FORK = multiprocessing.get_context("fork")  # MLflow is imported once


@pytest.fixture(scope="module")
def making(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How many seconds it takes to make a store."""
    begun = time.monotonic()
    make_store(f"sqlite:///{tmp_path_factory.mktemp('fresh')}/mlflow.db")
    return time.monotonic() - begun


def log_a_run(uri: str, done: "multiprocessing.Queue[str] | None" = None) -> None:
    make_store(uri)
    client = mlflow.MlflowClient(uri)
    run = client.create_run("0")
    client.log_metric(run.info.run_id, "val/ap", 0.5)
    if done is not None:
        done.put(run.info.run_id)


def runs_in(uri: str) -> set[str]:
    return {run.info.run_id for run in mlflow.MlflowClient(uri).search_runs(["0"])}


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_a_kill_while_it_is_made_leaves_nothing_that_matters(share: float, making: float, tmp_path: Path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    process = FORK.Process(target=make_store, args=(uri,))
    process.start()
    time.sleep(share * making)
    process.kill()
    process.join()
    log_a_run(uri)
    assert len(runs_in(uri)) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"mlflow.db", ".mlflow.db.lock"}


def test_several_first_starts_at_once_share_one_store(tmp_path: Path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    done = FORK.Queue()
    processes = [FORK.Process(target=log_a_run, args=(uri, done)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert runs_in(uri) == {done.get() for _ in range(4)}


def half_made(path: Path) -> None:
    """As MLflow's own migration leaves it when it is killed: some tables, no experiment."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        database.execute("INSERT INTO alembic_version VALUES ('451aebb31d03')")
        for table in ("experiments", "runs", "trace_info"):
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
        database.commit()


def test_one_that_was_left_half_made_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_start, "_QUIET", 0.2)
    path = tmp_path / "mlflow.db"
    half_made(path)
    with pytest.warns(FcerWarning, match=r"mlflow\.db: MLflow's store was left half-made, without a run in it, and is"):
        log_a_run(f"sqlite:///{path}")
    assert len(runs_in(f"sqlite:///{path}")) == 1


def test_one_that_somebody_is_making_is_waited_for(tmp_path: Path):
    path, whole = tmp_path / "mlflow.db", tmp_path / "whole"
    half_made(path)
    whole.mkdir()
    fresh_store(whole)

    def finish() -> None:
        time.sleep(0.5)
        (whole / "mlflow.db").replace(path)

    process = FORK.Process(target=finish)
    process.start()
    log_a_run(f"sqlite:///{path}")
    process.join()
    assert path.read_bytes()[:16] == b"SQLite format 3\0" and len(runs_in(f"sqlite:///{path}")) == 1


def test_what_holds_something_else_is_not_touched(tmp_path: Path):
    databases = [tmp_path / "studies.db", tmp_path / "text.db"]
    with closing(sqlite3.connect(databases[0])) as database:
        database.execute("CREATE TABLE studies AS SELECT 'head' AS name")
        database.commit()
    databases[1].write_text("no database at all " * 100)
    for path in databases:
        before = path.read_bytes()
        make_store(f"sqlite:///{path}")
        assert path.read_bytes() == before


@pytest.mark.parametrize("uri", ["http://server:5000", "sqlite://", "sqlite:///:memory:", "postgresql://u:p@h/d", ""])
def test_other_addresses_are_left_alone(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    make_store(uri)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/file/mlflow.db")
    with pytest.raises(FcerError, match=r"^MLflow at sqlite:.* failed \(.*\); check MLFLOW_TRACKING_URI"):
        prepare_client()


def test_a_full_disk_while_it_is_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SQLite says so through SQLAlchemy; afterwards nothing is in the way of the next start."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    said = FORK.Queue()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            prepare_client()
        except FcerError as error:
            said.put(str(error))

    process = FORK.Process(target=limited)
    process.start()
    process.join()
    assert process.exitcode == 0
    sentence = said.get(timeout=10)
    assert sentence.startswith("MLflow at sqlite:") and "disk" in sentence and "SQL:" not in sentence
    assert not (tmp_path / "mlflow.db").exists()

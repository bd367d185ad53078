"""MLflow's store in a file, made whole or not at all, however many commands start first.

MLflow fills a fresh SQLite file in dozens of steps, without a lock: a kill in between, or two commands at once, leave
one that no command can use any more. Here it is filled beside its place and renamed, one process at a time.
"""

import sqlite3
import time
import warnings
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock
from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH

from fcer.errors import FcerWarning
from fcer.runtime.files import scratch_folder
from fcer.tracking.moved import follow_move

__all__ = ["make_store"]

_SQLITE = "sqlite:///"
_QUIET = 10.0
"""Seconds without a change after which a half-made store counts as left behind: making one writes all the time."""
_FILLED_BY_MLFLOW = ("alembic_version", "workspaces")
"""Tables that get rows while the store is made."""


def make_store(uri: str) -> None:
    """Make the store at `uri` unless it is there; any address but that of a SQLite file is left alone.

    One that was moved with its artifacts finds them again. A file that was left half-made, and so holds no run, is made
    anew. Nothing else is touched.
    """
    path = _file_of(uri)
    if path is None:
        return
    if _is_whole(path):
        follow_move(path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if path.exists() and not _wait_until_left(path):
            return
        with scratch_folder(path.parent, path.name) as folder:
            _fill(folder / path.name)
            for end in ("-journal", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)  # SQLite would apply them to the new one
            (folder / path.name).replace(path)


def _file_of(uri: str) -> Path | None:
    name = uri.removeprefix(_SQLITE)
    return None if name in ("", uri, ":memory:") or "?" in name else Path(name).absolute()


def _is_whole(path: Path) -> bool:
    """Whether MLflow has finished making it: the default experiment is what comes last."""
    return bool(_rows(path).get("experiments"))


def _wait_until_left(path: Path) -> bool:
    """Whether it is half-made and was left so. Someone without our lock may be at work, as `mlflow server`: wait."""
    before, since = -1, time.monotonic()
    while not _is_whole(path):
        if any(filled for name, filled in _rows(path).items() if name not in _FILLED_BY_MLFLOW):
            return False  # something else than a store of MLflow: for MLflow to say
        changed = max(one.stat().st_mtime_ns for one in (path, path.with_name(path.name + "-journal")) if one.exists())
        if changed != before:
            before, since = changed, time.monotonic()
        elif time.monotonic() - since > _QUIET:
            sentence = f"{path}: MLflow's store was left half-made, without a run in it, and is made anew"
            warnings.warn(sentence, FcerWarning, stacklevel=3)
            return True
        time.sleep(0.1)
    return False


def _rows(path: Path) -> dict[str, bool]:
    """The tables of a SQLite file and whether each has rows; of anything else nothing is told."""
    if not path.exists():
        return {}
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: _has_rows(database, name) for name in names}
    except sqlite3.Error:
        return {"unreadable": True}


def _has_rows(database: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    return bool(database.execute(f'SELECT EXISTS (SELECT 1 FROM "{quoted}")').fetchone()[0])


def _fill(path: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # takes a second, and stores are made once

    store = SqlAlchemyStore(_SQLITE + str(path), DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH)  # type: ignore[no-untyped-call]
    store.engine.dispose()  # closes the file; SQLite has synced it by itself

"""A store in a file that was moved with its artifacts: MLflow keeps their addresses as absolute paths."""

import sqlite3
from contextlib import closing
from pathlib import Path

from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH

from fcer.errors import warn

__all__ = ["follow_move"]

_ADDRESSES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}
"""Columns that hold addresses of artifacts."""


def follow_move(store: Path) -> None:
    """Where the folder of a store's artifacts is gone and one of that name lies beside the store, take that one."""
    beside = store.parent / DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH
    with closing(sqlite3.connect(store)) as database:
        for before in _folders(database):
            if before != beside and not before.exists() and beside.is_dir():
                columns = [(table, column) for table, some in _ADDRESSES.items() for column in some]
                with database:  # all or nothing
                    changed = {named: _replace(database, *named, str(before), str(beside)) for named in columns}
                if changed["runs", "artifact_uri"]:  # else nothing was kept there
                    warn(f"{store}: was moved from {before.parent}; the addresses of its artifacts follow")


def _folders(database: sqlite3.Connection) -> set[Path]:
    """The folders named as MLflow's default that hold the artifacts of experiments."""
    found = database.execute("SELECT artifact_location FROM experiments").fetchall()
    folders = {Path(str(location).removeprefix("file://")).parent for (location,) in found}
    name = Path(DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH).name
    return {folder for folder in folders if folder.name == name and folder.is_absolute()}


def _replace(database: sqlite3.Connection, table: str, column: str, before: str, after: str) -> int:
    """Replace how addresses begin; of how many."""
    count = 0
    for scheme in ("", "file://"):
        old, new = f"{scheme}{before}/", f"{scheme}{after}/"
        count += database.execute(
            f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
            (new, len(old) + 1, len(old), old),
        ).rowcount
    return count

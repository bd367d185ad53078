"""Where a study's trials are kept, by URL, and a lock that all processes of a study share, wherever they run."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import optuna
import sqlalchemy
from filelock import FileLock
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from fcer.errors import ConfigError, FcerError

__all__ = ["TrialStore", "locked", "open_storage", "parse_store"]

_SQLITE, _JOURNAL, _POSTGRESQL = "sqlite:///", "journal:", "postgresql"
_MLFLOW_TABLES = {"experiments", "runs"}
_LONGEST_WAIT = 60
"""Seconds that SQLite waits for other processes before it gives up."""


@dataclass(frozen=True)
class TrialStore:
    """A storage by its address; nothing is open yet."""

    url: str = field(repr=False)
    """May hold a password: only for opening."""
    shown: str
    """The same for people and for MLflow, without a password."""
    file: Path | None
    """Of SQLite and of a journal, which serve the processes of one machine."""

    @property
    def is_journal(self) -> bool:
        """Whether it is a journal file."""
        return self.url.startswith(_JOURNAL)


def parse_store(url: str | None, default: Path) -> TrialStore:
    """The store that `--storage` names; none: SQLite in the file `default`."""
    url = f"{_SQLITE}{default}" if url is None else url
    for scheme in (_SQLITE, _JOURNAL):
        if url.startswith(scheme) and len(url) > len(scheme):
            return TrialStore(url, url, Path(url.removeprefix(scheme)))
    try:
        address = sqlalchemy.make_url(url)
    except ArgumentError:
        address = None
    if address is None or address.get_backend_name() != _POSTGRESQL:
        said = "the storage" if address is None else address.render_as_string()
        raise ConfigError(f"storage: {said} cannot be used; give sqlite:///FILE, journal:FILE or postgresql://...")
    hidden = address.update_query_dict({"password": "***"}) if "password" in address.query else address
    if address.drivername == _POSTGRESQL:
        # Which driver that means changes with SQLAlchemy's version; ours is the extra `postgres`
        address = address.set(drivername=f"{_POSTGRESQL}+psycopg2")
    return TrialStore(address.render_as_string(hide_password=False), hidden.render_as_string(), None)


def open_storage(store: TrialStore) -> BaseStorage:
    """Open the storage, and make it where it is not there yet."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        if store.file is not None:
            store.file.parent.mkdir(parents=True, exist_ok=True)
        # Processes that make the same tables at the same time would fail
        with locked(store, "open"):
            return _open_journal(store) if store.is_journal else _open_database(store)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"storage: {store.shown} needs {error.name}; install it with pip install 'fcer[postgres]'"
        ) from error
    except (SQLAlchemyError, OSError, ValueError, KeyError) as error:
        first = " ".join(str(error).splitlines()[:1])
        remedy = "start its server, or name another --storage" if store.file is None else "name another --storage"
        raise FcerError(f"storage: {store.shown} cannot be opened ({first}); {remedy}") from error


def _open_journal(store: TrialStore) -> BaseStorage:
    file = str(store.file)
    with Path(file).open("ab+") as existing:
        existing.seek(0)
        if existing.read(1) not in (b"", b"{"):
            raise ValueError("no journal of optuna")
    return JournalStorage(JournalFileBackend(file, lock_obj=_KernelLock(file)))


def _open_database(store: TrialStore) -> BaseStorage:
    engine = sqlalchemy.create_engine(store.url, poolclass=sqlalchemy.NullPool)
    if set(sqlalchemy.inspect(engine).get_table_names()) >= _MLFLOW_TABLES:
        raise ConfigError(f"storage: {store.shown} is MLflow's own database; name another for the study")
    waiting = {"connect_args": {"timeout": _LONGEST_WAIT}} if store.file else {"pool_pre_ping": True}
    return RDBStorage(store.url, engine_kwargs=waiting)


@contextmanager
def locked(store: TrialStore, purpose: str, study: str = "") -> Iterator[None]:
    """Let one process at a time do this; a process that is killed lets go. On a server each study has its own lock."""
    if store.file is not None:
        with FileLock(f"{store.file}.{purpose}.lock"):
            yield
        return
    engine = sqlalchemy.create_engine(store.url, poolclass=sqlalchemy.NullPool)
    key = int.from_bytes(hashlib.sha256(f"fcer {purpose} {study}".encode()).digest()[:8], "big", signed=True)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield


class _KernelLock(JournalFileOpenLock):
    """A journal's lock that a killed process lets go at once; optuna's own would hold up all others for long."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._lock = FileLock(f"{file}.lock")

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._lock.acquire()
        return True

    def release(self) -> None:
        """Let go."""
        self._lock.release()

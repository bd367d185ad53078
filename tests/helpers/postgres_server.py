"""A real PostgreSQL server for one test: a data folder and a free port of its own, open to this machine alone."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_USER = "postgres"


def _tool(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name) or next((str(f / name) for f in folders if (f / name).exists()), None)


def _as_server_user(*call: str) -> None:
    """PostgreSQL refuses to run as root."""
    prefix = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *call], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()


def has_postgres() -> bool:
    return _tool("initdb") is not None and _tool("pg_ctl") is not None


class ServerUrl(str):
    """The address of a database, whose server can be ended without a word and started again."""

    restart: Callable[[], None]


@contextmanager
def postgres_server() -> Iterator[ServerUrl]:
    """The URL of an empty database of a server that ends with the block; skips the test where there is none."""
    initdb, pg_ctl = _tool("initdb"), _tool("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Short, since a socket's path is; pytest's folders are closed to other users
    folder = Path(tempfile.mkdtemp(prefix="fcer-pg-", dir="/tmp"))
    data = folder / "data"
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        _as_server_user(initdb, "-D", str(data), "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        start = (pg_ctl, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options)
        _as_server_user(*start, "start")
        url = ServerUrl(f"postgresql://{_USER}@127.0.0.1:{port}/{_USER}")
        url.restart = lambda: _as_server_user(*start, "-m", "immediate", "restart")
        try:
            yield url
        finally:
            _as_server_user(pg_ctl, "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)

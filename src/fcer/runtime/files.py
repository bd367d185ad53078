"""Files that are either whole or not there: nothing half-written is ever read."""

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_path", "could_hold", "scratch_folder"]


_MOST_EXPANSION = 1100
"""Bytes that one byte can stand for: deflate reaches 1032, and nothing that we read packs tighter."""
_SMALL = 1 << 20


def could_hold(stored: int, declared: int) -> bool:
    """Whether so many bytes in a file can stand for so many in memory: work is bounded by the bytes there are.

    >>> could_hold(stored=5_000_000, declared=5_000_000_000), could_hold(stored=3_000, declared=8_000_000_000)
    (True, False)
    """
    return declared <= _SMALL + _MOST_EXPANSION * stored


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes `path`'s place, synced to disk, once the block succeeds.

    A block that raises, or a process that is killed, leaves an earlier `path` as it was. The name beside it
    starts with a dot and keeps the suffix, so that no reader's pattern finds it and libraries that look at
    suffixes still work.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    handle, name = tempfile.mkstemp(prefix=f"{_mark(path)}{os.getpid()}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        # mkstemp makes the file private; the finished one gets what the user's umask says
        partial.chmod(0o666 & ~_umask())
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A hidden folder in `parent` that is gone after the block; what killed processes left of such is removed first."""
    parent.mkdir(parents=True, exist_ok=True)
    mark = f".{name}-{socket.gethostname()}-"
    for left in parent.glob(f"{mark}*"):
        writer = left.name.removeprefix(mark).partition("-")[0]
        if writer.isdecimal() and not _alive(int(writer)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{mark}{os.getpid()}-", dir=parent) as folder:
        yield Path(folder)


def _mark(path: Path) -> str:
    return f".{path.stem}.partial-{socket.gethostname()}-"


def _sweep(path: Path) -> None:
    """Remove what killed processes of this machine left of `path`; others may still be writing theirs."""
    name = re.compile(re.escape(_mark(path)) + r"(\d+)-\w+" + re.escape(path.suffix))
    for left in path.parent.iterdir():
        writer = name.fullmatch(left.name)
        if writer and not _alive(int(writer[1])):
            left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's process is a process too
    return True


def _sync(path: Path) -> None:
    """Wait until the disk has it: a rename alone can outlive the data in a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

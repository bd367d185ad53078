"""Files that are either whole or not there: nothing half-written is ever read."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fcer.runtime.processes import Process, this_process

__all__ = ["atomic_path", "could_hold", "file_digest", "scratch_folder", "write_text"]


_MOST_EXPANSION = 1100
"""Bytes that one byte can stand for: deflate reaches 1032, and nothing that we read packs tighter."""
_SMALL = 1 << 20
_SILENCE = 7 * 24 * 3600.0
"""Seconds after which an unfinished file of a process that cannot be asked counts as left behind."""


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
    mark = f".{path.stem}.partial-"
    for left in _left_behind(path.parent, mark, path.suffix):
        left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{mark}{_writer()}-", suffix=path.suffix, dir=path.parent)
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


def write_text(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all, and return its path."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A hidden folder in `parent` that is gone after the block; what killed processes left of such is removed first."""
    parent.mkdir(parents=True, exist_ok=True)
    mark = f".{name}.scratch-"
    for left in _left_behind(parent, mark, ""):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{mark}{_writer()}-", dir=parent) as folder:
        yield Path(folder)


def _writer() -> str:
    """This process in a file's name: where its number counts (hashed), its number, and its start in seconds."""
    here = this_process()
    return f"{_place(here)}-{here.pid}-{here.started:.0f}"


def _place(process: Process) -> str:
    return hashlib.sha256(f"{process.host} {process.numbering}".encode()).hexdigest()[:12]


def _left_behind(folder: Path, mark: str, suffix: str) -> Iterator[Path]:
    """What dead writers left; whatever may still be written, here or in another container or machine, stays."""
    here = this_process()
    pattern = re.compile(re.escape(mark) + r"(?:([0-9a-f]{12})-(\d+)-(\d+)-)?\S+" + re.escape(suffix))
    for left in folder.iterdir():
        found = pattern.fullmatch(left.name)
        if not found:
            continue
        place, pid, started = found.groups()
        elsewhere = Process("", 0, 0.0)  # only its silence tells
        writer = here._replace(pid=int(pid), started=float(started)) if place == _place(here) else elsewhere
        with suppress(FileNotFoundError):
            if not writer.may_live(left.stat().st_mtime, _SILENCE):
                yield left


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

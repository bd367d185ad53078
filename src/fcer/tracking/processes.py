"""Which process writes a journal, and whether it still lives."""

import os
import socket
import time
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

__all__ = ["Process", "is_alive", "this_process"]

_CLOCK_STEP = 60.0
"""Seconds by which a machine's clock may be set while a process runs; its start is told by that clock."""
_SILENT_ELSEWHERE = 24 * 3600.0
"""Seconds without a line after which a process of another machine counts as dead: it cannot be asked."""


class Process(NamedTuple):
    """A process, told apart from a later one of the same number by its start."""

    host: str
    pid: int
    started: float


def this_process() -> Process:
    """The process that asks."""
    return Process(socket.gethostname(), os.getpid(), psutil.Process().create_time())


def is_alive(process: Process, last_heard: float) -> bool:
    """Whether `process`, last heard of at `last_heard` (seconds since 1970), may still be at work."""
    if process.host != socket.gethostname():
        return time.time() - last_heard < _SILENT_ELSEWHERE
    try:
        same = psutil.Process(process.pid)
        return bool(abs(same.create_time() - process.started) < _CLOCK_STEP and same.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True  # somebody else's process is a process too

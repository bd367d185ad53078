"""Which process it was, and whether it still lives."""

import os
import socket
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

__all__ = ["Process", "this_process"]

_CLOCK_STEP = 60.0
"""Seconds by which a machine's clock may be set while a process runs; its start is told by that clock."""


class Process(NamedTuple):
    """A process, told apart from a later one of the same number by its start."""

    host: str
    pid: int
    started: float

    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Whether it runs; can only be asked on its own machine."""
        try:
            same = psutil.Process(self.pid)
            is_it = abs(same.create_time() - self.started) < _CLOCK_STEP
            return bool(is_it and same.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True  # somebody else's process is a process too


def this_process() -> Process:
    """The process that asks."""
    return Process(socket.gethostname(), os.getpid(), psutil.Process().create_time())

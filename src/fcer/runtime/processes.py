"""Which process it was, and whether it still lives."""

import os
import socket
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
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
    numbering: str = ""
    """Within which process numbers are unique: containers may share a host name and not their numbers, a machine
    numbers anew when it boots. Unknown in records of earlier versions."""

    def is_here(self) -> bool:
        """Whether its number is one of those that this process can look up."""
        return self.host == socket.gethostname() and self.numbering in ("", _numbering())

    def is_alive(self) -> bool:
        """Whether it runs; can only be asked where it `is_here`."""
        try:
            same = psutil.Process(self.pid)
            is_it = abs(same.create_time() - self.started) < _CLOCK_STEP
            return bool(is_it and same.status() != psutil.STATUS_ZOMBIE)
        except (psutil.NoSuchProcess, ValueError, OverflowError):
            return False  # the last two: a number that no process can have
        except psutil.AccessDenied:
            return True  # somebody else's process is a process too

    def may_live(self, last_sign: float, silence: float) -> bool:
        """Whether it runs, as far as can be told: asked here, and elsewhere heard of in the last `silence` seconds.

        Parameters
        ----------
        last_sign
            When it last gave a sign of life, such as writing to a file, in seconds since 1970.
        silence
            Seconds without a sign after which a process that cannot be asked counts as dead.
        """
        return self.is_alive() if self.is_here() else time.time() - last_sign < silence


def this_process() -> Process:
    """The process that asks."""
    return _process(os.getpid())


@cache  # by number: a forked worker is another process
def _process(pid: int) -> Process:
    return Process(socket.gethostname(), pid, psutil.Process(pid).create_time(), _numbering())


@cache
def _numbering() -> str:
    """The machine's present run and the set of process numbers, where the system tells them (Linux does)."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)

"""Pieces of work for the tests of clusters: workers import them from here."""

import os
import signal
import sys
import time
import warnings
from pathlib import Path

from fcer.errors import DataError, FcerWarning


def squared(number: int) -> int:
    return number**2


def talking(number: int) -> int:
    print(f"at work on {number}")
    print(f"beware of {number}", file=sys.stderr)
    warnings.warn(f"{number} is odd", FcerWarning, stacklevel=1)
    return number


def failing(number: int) -> int:
    if number % 2:
        raise DataError(f"fire_{number}: cannot be used; leave it out")
    return number


def written(name: str) -> str:
    """Into the folder that the command runs in."""
    Path(name).write_text("whole")
    return str(Path.cwd())


def lost_once(mark: Path) -> str:
    """Its worker is killed the first time."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def always_lost(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def process(_: int) -> int:
    return os.getpid()


def slow(number: int) -> int:
    time.sleep(0.2)
    return number


def unforeseen(number: int) -> float:
    return 1 / (number - 3)


def returned(number: int) -> DataError:
    return DataError(f"fire_{number}")

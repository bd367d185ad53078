"""Commands in processes of their own that need not import anything: forked from a server that has."""

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.context import ForkContext, ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from fcer.cli import main

__all__ = ["Started", "prepare"]

_context: ForkContext | ForkServerContext = multiprocessing.get_context("fork")
_LONGEST_WAIT = 900.0
"""Seconds on a clock: the machine may be busy. What a command may take itself is limited in seconds of its own."""
_GROUP_WAIT = 10.0


def prepare() -> None:
    """Fork from a server that has run commands and so imported what they import; on one thread, as none is forked."""
    global _context
    _context = multiprocessing.get_context("forkserver")
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # for the server's own imports
    _context.set_forkserver_preload([f"{__package__}.imports"])


class Started:
    """A command that runs in `folder`, in a session of its own; what it says on stderr goes to a file beside."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[int, int] | None = None,
    ) -> None:
        self._log = folder.parent / f"{folder.name}-{time.monotonic_ns()}.stderr"
        whole = {**os.environ, **(environment or {})}
        given = (list(arguments), folder, whole, dict(limits or {}), self._log)
        self._process: BaseProcess = _context.Process(target=_run, args=given)
        self._process.start()

    def kill(self) -> None:
        """At once and with its workers, as when a machine dies."""
        pid = self._process.pid
        assert pid is not None
        until = time.monotonic() + _GROUP_WAIT
        while self._process.is_alive() and os.getpgid(pid) != pid and time.monotonic() < until:
            time.sleep(0.001)  # it has not begun yet
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(pid, 9)
        self._process.join()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.is_alive()

    def wait(self, seconds: float = _LONGEST_WAIT) -> tuple[int | None, str]:
        """Its exit code (none: it did not end) and what it said."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            self.kill()
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        self._log.unlink(missing_ok=True)
        return code, said


def _run(arguments: list[str], folder: Path, environment: dict[str, str], limits: dict[int, int], log: Path) -> None:
    os.setsid()
    with log.open("wb") as err, Path(os.devnull).open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
    # whatever Python had in their place, such as a test's capture
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()  # a server's would be those of its own start
    os.environ.update(environment)
    for kind, most in limits.items():
        resource.setrlimit(kind, (most, most))
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)

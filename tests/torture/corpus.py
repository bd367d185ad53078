"""Malformed inputs by class, each run through the command line in a process that may die of it."""

import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from fcer.cli import main

from . import fires, maps, stored, texts
from .cases import Case, Maker

__all__ = ["CLASSES", "Outcome", "make", "run_class", "run_one"]

CLASSES: dict[str, Maker] = {
    "npz": maps.npz,
    "hdf5 maps": maps.hdf5,
    "hdf5 fires": fires.hdf5,
    "geotiff": fires.geotiff,
    "yaml": texts.yaml,
    "space": texts.space,
    "flags": texts.flags,
    "urls": texts.urls,
    "results": stored.results,
    "journals": stored.journal,
    "safetensors": stored.safetensors,
    "pth": stored.pth,
}
LONGEST = 30.0
"""Seconds after which a case counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """What a command did with a malformed input."""

    number: int
    what: str
    code: int | None
    """None: it hung, or took the process with it."""
    failure: str
    """Empty where it held."""


def make(name: str, seed: int, number: int, sound: Path, folder: Path) -> Case:
    """The same case for the same class, seed and number."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return CLASSES[name](np.random.default_rng([seed, list(CLASSES).index(name), number]), sound, folder)


def run_class(name: str, seed: int, numbers: range, sound: Path, folder: Path) -> Iterator[Outcome]:
    """Every case of a class in turn; a process that dies or hangs is replaced."""
    context = multiprocessing.get_context("fork")
    left = list(numbers)
    while left:
        ours, theirs = context.Pipe()
        worker = context.Process(target=_work, args=(theirs, name, seed, left, sound, folder))
        worker.start()
        theirs.close()
        while left:
            try:
                outcome = ours.recv() if ours.poll(LONGEST) else None
            except EOFError:
                worker.join()
                outcome = Outcome(left[0], "", None, f"the process died ({worker.exitcode})")
            outcome = outcome or Outcome(left[0], "", None, f"hung for {LONGEST:g} s")
            yield outcome
            left.pop(0)
            if outcome.code is None:
                break
        worker.kill()
        worker.join()


def _work(pipe: Connection, name: str, seed: int, numbers: list[int], sound: Path, folder: Path) -> None:
    with (folder.parent / "stdout").open("w+b") as out, (folder.parent / "stderr").open("w+b") as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        # whatever Python had in their place, such as a test's capture
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        for number in numbers:
            case = make(name, seed, number, sound, folder)
            for file in (out, err):
                file.seek(0)
                file.truncate()
            code, escaped = run_one(case, folder)
            sys.stdout.flush()
            sys.stderr.flush()
            err.seek(0)
            said = err.read().decode(errors="replace")
            failure = escaped or _failure(case, code, said)
            if (folder / "EXECUTED").exists():
                failure = "code from a file was run"
            pipe.send(Outcome(number, case.what, code, failure))


def run_one(case: Case, folder: Path) -> tuple[int, str]:
    """The command's exit code, and what escaped it."""
    os.chdir(folder)
    os.environ.update(case.environment)
    try:
        return main(list(case.arguments)), ""
    except BaseException as error:
        return 1, f"{type(error).__name__} escaped: {error}"


def _failure(case: Case, code: int, said: str) -> str:
    """Why a case does not hold; empty where it does."""
    lines = [line for line in said.splitlines() if line.startswith("fcer: ") and "fcer: warning: " not in line]
    if "should not happen" in said or "Traceback" in said:
        return f"internal error: {_short(lines[-1] if lines else said)}"
    if code not in (0, 2) and "start its server" not in said:  # a good address of a server that is not there
        return f"exit code {code}: {_short(lines[-1] if lines else said)}"
    if code == 2 and len(lines) != 1:
        return f"{len(lines)} lines instead of one"
    if code == 0 and case.refuse:
        return "accepted, though it must not be"
    return ""


def _short(line: str) -> str:
    """Without what differs from case to case."""
    return re.sub(r"\S*/\S*", "PATH", line)[:150]

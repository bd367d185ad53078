"""Malformed inputs by class, each run through the command line in a process that may die of it."""

import os
import re
import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fcer.cli import main

from . import brought, fires, maps, requests, stored, texts
from .cases import Case, Maker
from .warm import Started

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
    "detections": brought.detections,
    "layers": brought.layers,
    "forecasts": brought.forecasts,
    "calibrations": stored.calibration,
    "requests": requests.request,
}
LIMITS = {resource.RLIMIT_CPU: 60, resource.RLIMIT_AS: 12 << 30}
"""Seconds of computing after which a case counts as hanging, and bytes that it may ask for."""


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
    """Every case of a class in turn, each in a process of its own."""
    for number in numbers:
        case = make(name, seed, number, sound, folder)
        if case.ask is not None:
            yield Outcome(number, case.what, 2, case.ask())
            continue
        code, said = Started(case.arguments, folder, case.environment, LIMITS).wait()
        failure = _failure(case, code, said)
        if (folder / "EXECUTED").exists():
            failure = "code from a file was run"
        yield Outcome(number, case.what, code, failure)


def run_one(case: Case, folder: Path) -> int:
    """The command's exit code, in this process."""
    os.chdir(folder)
    os.environ.update(case.environment)
    return main(list(case.arguments))


def _failure(case: Case, code: int | None, said: str) -> str:
    """Why a case does not hold; empty where it does."""
    lines = [line for line in said.splitlines() if line.startswith("fcer: ") and "fcer: warning: " not in line]
    if code is None or code < 0:
        return f"hung, or died of signal {-(code or 0)}"
    if "should not happen" in said or "Traceback" in said:
        return f"internal error: {_short(lines[-1] if lines else said[-150:])}"
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

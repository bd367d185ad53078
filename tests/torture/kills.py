"""kill -9 at random moments: the same command, started again, ends with what an undisturbed one gives."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .corpus import Outcome
from .maps import arrays

__all__ = ["KILLS", "run_kill"]

_SYNTHESIZE = ("synthesize", "--out", "made", "--years", "2018", "2019", "--fires-per-year", "6", "--workers", "2")
_EVALUATE = ("evaluate", "--predictions", "predictions_2018.npz", "--out", "results", "--bootstrap", "50")
KILLS: dict[str, tuple[Sequence[str], str, bool]] = {
    "kill synthesize": (_SYNTHESIZE, "made", False),
    "kill evaluate": (_EVALUATE, "results", False),
    "kill first start": (_EVALUATE, "results", True),
}
"""By name: the command, the folder that it writes, and whether MLflow's store is new each time."""


def run_kill(name: str, seed: int, number: int, folder: Path) -> Outcome:
    """Kill the command once, start it again, and compare."""
    arguments, output, fresh_store = KILLS[name]
    rng = np.random.default_rng([seed, list(KILLS).index(name), number])
    reference = folder.parent / f"{folder.name}-{name.replace(' ', '-')}-reference"
    if not reference.exists():
        _inputs(reference)
        started = time.monotonic()
        if (undisturbed := _finish(arguments, reference)) is not None:
            return Outcome(number, "undisturbed", 1, undisturbed)
        (reference / "seconds").write_text(str(time.monotonic() - started))
    _inputs(folder)
    if not fresh_store and (reference / "mlflow.db").exists():  # where it logs at all
        shutil.copy(reference / "mlflow.db", folder / "mlflow.db")
    moment = float(rng.uniform(0, float((reference / "seconds").read_text())))
    what = f"after {moment:.2f} s"
    process = _start(arguments, folder)
    time.sleep(moment)
    os.killpg(process.pid, 9)  # a session of its own: workers die too, as when a machine does
    process.wait()
    failed = _finish(arguments, folder)
    if failed is not None:
        return Outcome(number, what, 1, failed)
    return Outcome(number, what, 0, _difference(reference / output, folder / output))


def _inputs(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    np.savez(folder / "predictions_2018.npz", **arrays(np.random.default_rng(0)))


def _start(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    command = [sys.executable, "-m", "fcer", *arguments]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, text=True, **pipes)


def _finish(arguments: Sequence[str], folder: Path) -> str | None:
    """Run to the end; what it said where that was no success."""
    process = _start(arguments, folder)
    _, said = process.communicate(timeout=300)
    last = [line for line in said.splitlines() if line.startswith("fcer: ")][-1:] or said.splitlines()[-1:]
    return None if process.returncode == 0 else f"started again: exit code {process.returncode}: {' '.join(last)[:150]}"


def _difference(reference: Path, found: Path) -> str:
    """How two folders differ; unfinished files that nobody will finish count."""
    ours, theirs = (
        {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()} for root in (found, reference)
    )
    if odd := sorted(ours.keys() ^ theirs.keys()):
        return f"{odd[0].split('-')[0]} is there in one of them"
    other = [name for name in sorted(ours) if ours[name].read_bytes() != theirs[name].read_bytes()]
    return f"{other[0]} differs" if other else ""

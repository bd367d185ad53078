"""kill -9 at random moments: the same command, started again, ends with what an undisturbed one gives."""

import time
from pathlib import Path

import numpy as np

from mlflow_stores import fresh_store

from .corpus import Outcome
from .scenes import difference, finish, inputs, reference, seconds, start

__all__ = ["KILLS", "run_kill"]

KILLS: dict[str, tuple[str, bool]] = {
    "kill synthesize": ("synthesize", False),
    "kill ingest": ("ingest", False),
    "kill evaluate": ("evaluate", False),
    "kill first start": ("evaluate", True),
    "kill main": ("main", False),
    "kill search": ("search", False),
}
"""By name: the scene, and whether MLflow's store is new each time, and the kill while it is made."""


def run_kill(name: str, seed: int, number: int, folder: Path) -> Outcome:
    """Kill the command once, start it again, and compare."""
    scene, first = KILLS[name]
    rng = np.random.default_rng([seed, list(KILLS).index(name), number])
    reference(scene, folder)
    inputs(folder)
    if not first:
        fresh_store(folder)
    moment = float(rng.uniform(0, seconds(scene, folder)))
    command = start(scene, folder)
    time.sleep(moment)
    command.kill()
    what = f"after {moment:.2f} s"
    if failed := finish(scene, folder):
        return Outcome(number, what, 1, failed)
    return Outcome(number, what, 0, difference(scene, folder))

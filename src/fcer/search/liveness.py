"""Whether the process that runs a trial still lives: asked on this machine, listened for on others."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial

from fcer.runtime.processes import Process

__all__ = ["BEAT", "WORKER", "Watch", "beating"]

WORKER, BEAT = "worker", "beat"
"""What a trial tells of the process that runs it: which it is, and a number that grows while it lives."""

SECONDS_A_BEAT = 10.0
SILENCE = 90.0
"""Seconds without a beat after which a process of another machine counts as dead."""


@contextmanager
def beating(trial: optuna.Trial, seconds: float = SECONDS_A_BEAT) -> Iterator[None]:
    """Tell others from time to time that this process still works on the trial."""
    over = threading.Event()

    def beat() -> None:
        count = 0
        while not over.wait(seconds):
            count += 1
            try:
                trial.set_user_attr(BEAT, count)
            except UpdateFinishedTrialError:
                return  # others took us for dead; whoever runs the trial finds out by itself

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Watch:
    """Tells which processes are dead by the beats that it saw itself, so that no clock of another machine counts."""

    def __init__(self, silence: float = SILENCE) -> None:
        self._silence = silence
        self._heard: dict[int, tuple[int, float]] = {}

    def is_dead(self, trial: FrozenTrial) -> bool:
        """Whether nobody runs this running trial any more. To be asked while no process can claim a trial."""
        if WORKER not in trial.user_attrs:
            return True  # killed while it claimed the trial
        worker = Process(*trial.user_attrs[WORKER])
        if worker.is_here():
            return not worker.is_alive()
        beat, now = trial.user_attrs.get(BEAT, 0), time.monotonic()
        if trial.number not in self._heard or self._heard[trial.number][0] != beat:
            self._heard[trial.number] = (beat, now)
        return now - self._heard[trial.number][1] > self._silence

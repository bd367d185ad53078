"""Progress of a study for whoever waits for it: trials done, the best so far, the time left."""

import sys
import threading
import time
from typing import Any

import optuna
from tqdm import tqdm

from fcer.search.study import best_trial, paper_trial, progress_of

__all__ = ["Board"]


class Board:
    """A bar in a terminal; anywhere, a line for each new best and each tenth of the study. Threads may share it."""

    def __init__(self, study: optuna.Study, size: int, score: str = "AUROC") -> None:
        self._study = study
        self._size = size
        self._score = score
        self._lock = threading.Lock()
        trials = study.get_trials(deepcopy=False)
        self._begun_with = self._done = progress_of(trials).done
        self._best = best_trial(trials)
        self._started: float | None = None
        initial = min(self._done, size)
        self._bar: tqdm[Any] = tqdm(
            total=size, initial=initial, desc="study", unit="trial", disable=None, leave=False, smoothing=0
        )

    def begin(self) -> None:
        """Time counts from the first trial that begins: processes take their time to start."""
        with self._lock:
            self._started = self._started or time.monotonic()

    def update(self) -> None:
        """Look at the study, to which other commands may contribute."""
        with self._lock:
            trials = self._study.get_trials(deepcopy=False)
            done, best = progress_of(trials).done, best_trial(trials)
            better = best is not None and (self._best is None or best.values > self._best.values)
            tenth = 10 * done // self._size > 10 * self._done // self._size
            self._done, self._best = done, best
            self._bar.update(min(done, self._size) - self._bar.n)
            if best is not None:
                self._bar.set_postfix(best=f"{best.values[0]:.4f}")
            if better or tenth:
                paper = paper_trial(trials)
                beside = f" (paper's setting {paper.values[0]:.4f})" if paper else ""
                found = best and f"best {self._score} {best.values[0]:.4f} in trial {best.number}{beside}"
                said = found or "none complete"
                tqdm.write(f"study: {done} of {self._size} trials done, {said}, {self._time_left()}")
                sys.stdout.flush()  # a log file is to show it too

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()

    def _time_left(self) -> str:
        done_here = self._done - self._begun_with
        if self._started is None or done_here < 1:
            return "time left unknown"
        seconds = round((time.monotonic() - self._started) / done_here * max(0, self._size - self._done))
        return f"about {seconds // 60}:{seconds % 60:02d} min left"

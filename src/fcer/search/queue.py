"""Which trial comes next: exactly as many as were asked for, however many processes ask and whichever is killed."""

import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from fcer.runtime.processes import Process
from fcer.search.liveness import WORKER, Watch
from fcer.search.space import Space
from fcer.search.storage import TrialStore, locked
from fcer.search.study import PAPER, RETRIES, RETRY_OF, counts

__all__ = ["TrialQueue", "study_size"]

_GIVEN, _POINT = "given", "point"
"""What a trial was told to try, and its store on the grid."""
_POLL = 0.5
"""Seconds between looks at what other processes do."""


def study_size(space: Space, trials: int, *, grid: bool) -> int:
    """How many trials the study will have: a grid may have fewer than were asked for."""
    return sum(1 for _ in zip(range(trials), space.grid(), strict=False)) if grid else trials


class TrialQueue:
    """A study's trials as one process sees them."""

    def __init__(
        self, study: optuna.Study, store: TrialStore, space: Space, trials: int, *, grid: bool = False
    ) -> None:
        self._study = study
        self._store = store
        self._space = space
        self._size = study_size(space, trials, grid=grid)
        self._grid = grid
        self._watch = Watch()

    def claim(self, worker: Process) -> optuna.Trial | None:
        """The next trial, which is then this worker's; none once all are over.

        Where all are taken it waits for the others: one of them may be killed, and its trial is to be done again.
        """
        while True:
            with locked(self._store, "claim", self._study.study_name):
                trials = self._alive_trials()
                taken = [trial for trial in trials if trial.state is not TrialState.WAITING]
                if len(taken) < self._size:
                    self._fill(trials, queued=len(taken) < len(trials))
                    trial = self._study.ask()
                    trial.set_user_attr(WORKER, list(worker))
                    return trial
            if not any(trial.state is TrialState.RUNNING for trial in taken):
                return None
            time.sleep(_POLL)

    def requeue_dead(self) -> None:
        """Fail the trials whose process was killed, and queue them again."""
        with locked(self._store, "claim", self._study.study_name):
            self._alive_trials()

    def _alive_trials(self) -> list[FrozenTrial]:
        """The trials that count, after those of dead processes were failed and queued again."""
        trials = self._study.get_trials(deepcopy=False)
        dead = [trial for trial in trials if trial.state is TrialState.RUNNING and self._watch.is_dead(trial)]
        for trial in dead:
            self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        if dead:
            trials = self._study.get_trials(deepcopy=False)
        # asked of the storage, not of `dead`: who failed a trial may have been killed before queueing it again
        done_again = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        lost = [trial for trial in trials if not counts(trial) and trial.number not in done_again]
        for trial in lost:
            kept = {key: value for key, value in trial.user_attrs.items() if key in (PAPER, _POINT)}
            given = {**trial.user_attrs.get(_GIVEN, {}), **trial.params}
            self._enqueue(given, {**kept, RETRIES: trial.user_attrs.get(RETRIES, 0) + 1, RETRY_OF: trial.number})
        if lost:
            trials = self._study.get_trials(deepcopy=False)
        return [trial for trial in trials if counts(trial)]

    def _fill(self, trials: Sequence[FrozenTrial], *, queued: bool) -> None:
        """See to it that what is asked for next is what is due: the paper's setting, a point of the grid, or any."""
        if not any(PAPER in trial.user_attrs for trial in trials):
            self._enqueue(self._space.paper(), {PAPER: True, **({_POINT: 0} if self._grid else {})})
        elif self._grid and not queued:
            done = {trial.user_attrs.get(_POINT) for trial in trials}
            point, params = next((k, p) for k, p in zip(count(), self._space.grid(), strict=False) if k not in done)
            self._enqueue(params, {_POINT: point})

    def _enqueue(self, params: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self._study.enqueue_trial(dict(params), user_attrs={**attributes, _GIVEN: dict(params)})

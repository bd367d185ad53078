"""The trials of a search as runs: each one's curves, scores and settings, as it goes on or after its process died."""

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from fcer.config import Config
from fcer.config.fields import fields
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.students import epoch_rows
from fcer.runtime.processes import Process
from fcer.search.board import Board
from fcer.search.crew import Worker
from fcer.search.liveness import WORKER
from fcer.search.scores import Scores
from fcer.search.space import Space
from fcer.search.study import PAPER, RETRY_OF, SCORES, OptunaStudy
from fcer.search.worker import Begun, Ended

__all__ = ["TrialRuns"]

_MLFLOW_ID = re.compile("[0-9a-f]{32}")
_MOMENT = 1.0
"""Seconds that are waited for a run's id."""
_TRIAL = "fcer.trial"
"""The tag of a trial's run that says which one it is."""


class _TrialFailedError(Exception):
    """Ends a trial's run as failed; the search goes on."""


@dataclass(frozen=True)
class TrialRuns:
    """Runs below the search's own, one a trial."""

    trials: OptunaStudy
    space: Space
    config: Config
    log: RunLog
    """The search's run."""

    def follow(self, worker: Worker, board: Board) -> None:
        """Log one worker's trials, each to a run of its own."""
        for begun in worker.begun():
            board.begin()
            with suppress(_TrialFailedError), self._run(begun) as run:
                self._tell_run(begun.number, run)
                ended = worker.ended() or Ended(begun.number, "failed", None, [], "its process was killed")
                self._log_trial(run, begun, ended)
                if ended.scores:
                    self.log.metrics(
                        {"study/auroc": ended.scores.auroc, "study/auroc_within": ended.scores.auroc_within},
                        step=begun.number,
                    )
                if ended.state == "failed":
                    raise _TrialFailedError
            board.update()

    def log_unlogged(self) -> None:
        """Give a run to every finished trial of a killed process that was not logged any more."""
        known = self.log.known_below(_TRIAL)
        for trial in self.trials.get_trials(deepcopy=False):
            worker = trial.user_attrs.get(WORKER)
            over = trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
            if not over or worker is None or self._name(trial.number) in known:
                continue
            if not (process := Process(*worker)).is_here() or process.is_alive():
                continue  # whoever runs it may be about to log it
            self._log_over(trial)

    def _log_over(self, trial: FrozenTrial) -> None:
        """Log a trial as the storage has it."""
        told, complete = trial.user_attrs, trial.state is TrialState.COMPLETE
        begun = Begun(trial.number, self.space.settings(trial.params), PAPER in told, told.get(RETRY_OF))
        known = {name: told[SCORES][name] for name in Scores._fields if name in told.get(SCORES, {})}
        scores = Scores(**known) if complete else None
        with self._run(begun, reopen=True) as run:
            run.curves(("val/auroc", value, epoch) for epoch, value in sorted(trial.intermediate_values.items()))
            self._log_trial(run, begun, Ended(trial.number, trial.state.name.lower(), scores, [], ""))

    @contextmanager
    def _run(self, begun: Begun, *, reopen: bool = False) -> Iterator[RunLog]:
        """The run of a trial, with all settings of its head."""
        base = Config() if begun.paper else self.config
        head = {key: getattr(base, key) for key in fields() if key.startswith("head_")}
        settings: dict[str, Any] = {"trial": begun.number, "study": self.config.study, **head, **begun.settings}
        with self.log.child(f"trial {begun.number}", settings, reopen=reopen) as run:
            yield run

    def _tell_run(self, number: int, run: RunLog) -> None:
        """Let the trial know its run: MLflow hears of that in its own time, for which a moment is waited."""
        deadline = time.monotonic() + _MOMENT
        while not _MLFLOW_ID.fullmatch(run.id) and time.monotonic() < deadline:
            time.sleep(0.05)
        storage = self.trials._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.trials._study_id, number)
        with suppress(UpdateFinishedTrialError):  # it was quicker
            storage.set_trial_user_attr(trial_id, "mlflow_run", run.id)

    def _log_trial(self, run: RunLog, begun: Begun, ended: Ended) -> None:
        run.curves(row for record in ended.records for row in epoch_rows(record))
        if ended.scores:
            auroc, auprc, fidelity, epoch, within = ended.scores
            scores = {"best/val_auroc": auroc, "best/val_auprc": auprc, "best/fidelity": fidelity, "best/epoch": epoch}
            run.metrics(scores)
            run.metrics({"best/val_auroc_within": within} if not math.isnan(within) else {})
        elif ended.state == "pruned" and ended.records:
            run.metrics({"best/val_auroc": max(record.score for record in ended.records)})
        setting = ", ".join(f"{name} {value}" for name, value in begun.settings.items())
        which = "the paper's setting" if begun.paper else setting
        why = f" ({ended.reason})" if ended.reason else ""
        run.note(f"Trial {begun.number} of the study `{self.config.study}`, {ended.state}{why}: {which}.")
        retry = {} if begun.retry_of is None else {"fcer.retry_of": str(begun.retry_of)}
        reason = {"fcer.trial_failure": ended.reason} if ended.reason else {}
        named = {_TRIAL: self._name(begun.number)}
        run.tags({**named, "fcer.trial_state": ended.state, "fcer.paper": str(begun.paper).lower(), **retry, **reason})

    def _name(self, number: int) -> str:
        return f"{self.config.study}/{number}"

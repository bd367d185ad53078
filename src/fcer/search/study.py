"""A study: how it is begun or joined, which of its trials count, and how far it has come.

A trial counts if it is complete, pruned, running or queued, or if it failed by what it tried (a loss that is no
longer finite). A trial whose process was killed does not count: it is failed and queued again, and that one counts.
A trial that loses its process again and again is given up, and then counts as failed.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from fcer.errors import ConfigError
from fcer.search.storage import TrialStore, locked

__all__ = [
    "FAILURE",
    "OBJECTIVES",
    "PAPER",
    "REFERENCES",
    "RETRIES",
    "RETRY_OF",
    "SCORES",
    "OptunaStudy",
    "Progress",
    "agree",
    "begin_session",
    "best_trial",
    "counts",
    "open_study",
    "paper_trial",
    "progress_of",
]

OBJECTIVES: Mapping[str, tuple[str, ...]] = {
    "auroc": ("auroc",),
    "auroc_auprc": ("auroc", "auprc"),
    "auroc_fidelity": ("auroc", "fidelity"),
    "within": ("auroc_within",),
}
"""Scores that are maximised; what each is stands at `Scores`."""

REFERENCES = "references"
"""What the study remembers of its backbone: the scores of its entropy and of its probability on the same pixels."""

PAPER, FAILURE, SCORES, RETRIES, RETRY_OF = "paper", "failure", "scores", "retries", "retry_of"
"""What trials tell of themselves: the paper's setting, why it failed, its scores, whose store it took."""

MOST_RETRIES = 3

_IDENTITY = "fcer."
_WHAT = {
    "space": "searches another space",
    "objective": "has another objective",
    "cache": "is of other data, members or views (another feature cache)",
    "head": "has other settings of the head beside the space",
    "anchor_px": "has another anchor",
    "threshold": "has another threshold",
}


class Progress(NamedTuple):
    """How far a study has come."""

    complete: int
    pruned: int
    failed: int
    running: int

    @property
    def done(self) -> int:
        """Trials that count and are over."""
        return self.complete + self.pruned + self.failed


def open_study(storage: BaseStorage, store: TrialStore, name: str, *, objective: str, space: str) -> OptunaStudy:
    """The study of this name, begun now if it is not there yet; one that asks for something else is refused."""
    directions = [StudyDirection.MAXIMIZE] * len(OBJECTIVES[objective])
    with locked(store, "claim", name):
        study = optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
        if study.get_trials(deepcopy=False) and f"{_IDENTITY}space" not in study.user_attrs:
            raise ConfigError(f"study: `{name}` in {store.shown} is not of fcer search; name another --study")
        _agree(study, store, {"objective": objective, "space": space})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names([f"validation {name}" for name in OBJECTIVES[objective]])
    return study


def agree(study: OptunaStudy, store: TrialStore, identity: Mapping[str, Any]) -> None:
    """Make sure that this process works on the same as all others of the study; the first one settles it."""
    with locked(store, "claim", study.study_name):
        _agree(study, store, identity)


def _agree(study: OptunaStudy, store: TrialStore, identity: Mapping[str, Any]) -> None:
    known = study.user_attrs
    for key, value in identity.items():
        settled = known.get(_IDENTITY + key)
        if settled is None:
            study.set_user_attr(_IDENTITY + key, value)
        elif settled != value:
            raise ConfigError(f"study: `{study.study_name}` in {store.shown} {_WHAT[key]}; name another --study")


def begin_session(study: OptunaStudy, store: TrialStore) -> int:
    """Count the commands that have worked on the study: each has random numbers of its own."""
    with locked(store, "claim", study.study_name):
        session = int(study.user_attrs.get("sessions", 0))
        study.set_user_attr("sessions", session + 1)
    return session


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of those that were asked for."""
    lost = trial.state is TrialState.FAIL and FAILURE not in trial.user_attrs
    return not lost or trial.user_attrs.get(RETRIES, 0) >= MOST_RETRIES


def progress_of(trials: Sequence[FrozenTrial]) -> Progress:
    """How many of the trials that count are in which state."""
    states = [trial.state for trial in trials if counts(trial)]
    order = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
    return Progress(*(states.count(state) for state in order))


def best_trial(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The complete trial with the best first score; of equals the better in the other, then the first of them."""
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    return max(complete, key=lambda trial: (*trial.values, -trial.number), default=None)


def paper_trial(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The complete trial of the paper's setting."""
    complete = (trial for trial in trials if trial.state is TrialState.COMPLETE and PAPER in trial.user_attrs)
    return next(complete, None)

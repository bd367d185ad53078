"""A process that runs trials, one after the other, until the study has all that were asked for."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState
from tqdm import tqdm

from fcer.errors import FcerError
from fcer.runtime.parallel import end_with_parent
from fcer.runtime.processes import this_process
from fcer.search.liveness import beating
from fcer.search.queue import TrialQueue
from fcer.search.samplers import REPORT_EVERY, draw_sampler_seed, make_pruner, make_sampler
from fcer.search.scores import HeadTrials, Scores
from fcer.search.space import Space
from fcer.search.storage import TrialStore, open_storage
from fcer.search.study import FAILURE, OBJECTIVES, PAPER, RETRY_OF, SCORES
from fcer.training.epochs import EpochRecord
from fcer.training.feature_cache import open_cache
from fcer.training.head_settings import HeadSettings

__all__ = ["Begun", "Ended", "Job", "work"]


@dataclass(frozen=True)
class Job:
    """What the workers of one command are told."""

    store: TrialStore
    study: str
    space: Space
    trials: int
    sampler: str
    pruner: str
    objective: str
    cache: Path
    """Folder of cached features: neither the data nor the members are needed."""
    anchor_px: float
    threshold: float
    """Probability above which the backbone predicts fire."""
    head: dict[str, Any]
    """Settings of the head, of which the space replaces some."""
    seed: int
    session: int


class Begun(NamedTuple):
    """A trial has begun."""

    number: int
    settings: dict[str, Any]
    """Those that are searched, as the configuration has them."""
    paper: bool
    retry_of: int | None


class Ended(NamedTuple):
    """A trial is over."""

    number: int
    state: str
    """complete, pruned or failed."""
    scores: Scores | None
    """Of a complete trial."""
    records: list[EpochRecord]
    reason: str
    """Why it failed."""


def work(job: Job, index: int, channel: Connection) -> None:
    """Run trials and tell of each; the main function of a worker process."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    tqdm.set_lock(threading.RLock())  # its own would be one between processes, which a kill leaves behind
    seed = draw_sampler_seed(job.seed, job.session, index)
    study = optuna.load_study(
        study_name=job.study,
        storage=open_storage(job.store),
        sampler=make_sampler(job.sampler, seed),
        pruner=make_pruner(job.pruner),
    )
    queue = TrialQueue(study, job.store, job.space, job.trials, grid=job.sampler == "grid")
    trials, me = HeadTrials(open_cache(job.cache), job.anchor_px, job.threshold), this_process()
    given = HeadSettings(**job.head)
    while trial := queue.claim(me):
        with beating(trial):
            params = job.space.suggest(trial)
            settings = job.space.settings(params)
            attributes = trial.user_attrs
            channel.send(Begun(trial.number, settings, PAPER in attributes, attributes.get(RETRY_OF)))
            # the paper's setting is the paper's in what is not searched too
            base = HeadSettings(seed=given.seed) if PAPER in attributes else given
            head = replace(base, **{k.removeprefix("head_"): v for k, v in settings.items()})
            ended = run_trial(trial, trials, head, OBJECTIVES[job.objective])
        channel.send(ended)


def run_trial(trial: optuna.Trial, trials: HeadTrials, settings: HeadSettings, objectives: tuple[str, ...]) -> Ended:
    """Fit and score one head, and tell the study."""
    records: list[EpochRecord] = []
    try:
        return _run_trial(trial, trials, settings, objectives, records)
    except UpdateFinishedTrialError:
        return Ended(trial.number, "failed", None, records, "others took this process for dead and do the trial again")


def _run_trial(
    trial: optuna.Trial,
    trials: HeadTrials,
    settings: HeadSettings,
    objectives: tuple[str, ...],
    records: list[EpochRecord],
) -> Ended:
    # optuna prunes by one objective only, and epochs know their AUROC; the paper's setting is what all others are
    # measured against
    report = objectives == ("auroc",)
    on_epoch = _reporter(trial, records, report=report, prune=report and PAPER not in trial.user_attrs)
    started = time.perf_counter()
    scores = None
    try:
        scores = trials.fit(settings, on_epoch)
    except optuna.TrialPruned:
        trial.set_user_attr(SCORES, _kept(max(record.score for record in records), started))
        trial.study.tell(trial, state=TrialState.PRUNED)
        return Ended(trial.number, "pruned", None, records, "")
    except FcerError as error:
        trial.set_user_attr(FAILURE, str(error))
        trial.study.tell(trial, state=TrialState.FAIL)
        return Ended(trial.number, "failed", None, records, str(error))
    trial.set_user_attr(SCORES, {**_kept(scores.auroc, started), **scores._asdict()})
    trial.study.tell(trial, [getattr(scores, name) for name in objectives])
    return Ended(trial.number, "complete", scores, records, "")


def _kept(auroc: float, started: float) -> dict[str, float]:
    return {"auroc": auroc, "fit_seconds": round(time.perf_counter() - started, 4)}


def _reporter(
    trial: optuna.Trial, records: list[EpochRecord], *, report: bool, prune: bool
) -> Callable[[EpochRecord], None]:
    def on_epoch(record: EpochRecord) -> None:
        records.append(record)
        if not report or record.epoch % REPORT_EVERY:
            return
        trial.report(max(past.score for past in records), record.epoch)
        if prune and trial.should_prune():
            raise optuna.TrialPruned

    return on_epoch

"""`fcer search`: an Optuna study over the head, each trial a run of its own, and the best head refitted."""

import importlib.util
import json
import os
import re
import warnings
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path

from fcer.commands import COMMANDS, settings_of
from fcer.commands.distill import distill_year, epoch_rows
from fcer.commands.ensemble import YearEnsemble, teaching_of, year_ensembles
from fcer.commands.study import head_settings, open_data
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config, fields
from fcer.errors import ConfigError, FcerError, FcerWarning
from fcer.runtime.files import atomic_path
from fcer.search.board import Board
from fcer.search.crew import Worker, run_crew, threads_each
from fcer.search.queue import TrialQueue, study_size
from fcer.search.results import importances, settings_yaml, write_results
from fcer.search.samplers import check_sampler
from fcer.search.space import Space, read_space
from fcer.search.storage import Place, locked, open_storage, parse_place
from fcer.search.study import (
    FAILURE,
    OBJECTIVES,
    Study,
    agree,
    begin_session,
    best_trial,
    open_study,
    paper_trial,
    progress_of,
)
from fcer.search.worker import Begun, Ended, Job
from fcer.tracking import TrackedRun, tracked_run
from fcer.tracking.server import tracking_uri
from fcer.training.distillation import settle_anchor
from fcer.training.feature_cache import FeatureCache, cache_features
from fcer.training.threads import torch_threads
from fcer.training.validation_region import gather_region

__all__ = ["run"]

_RUN, _REFITTED = "mlflow_run", "refitted"
"""What a study remembers: its run in MLflow, and which trial was refitted last."""


class _TrialFailedError(Exception):
    """Ends a trial's run as failed; the study goes on."""


def run(resolved: Resolved) -> None:
    """Begin or join the study, have all its trials done, and refit the best."""
    config = resolved.config
    space = read_space(config.space)
    _check(resolved, space)
    place = parse_place(config.storage, config.work / "studies.db")
    if config.dashboard:
        print(_dashboard(place))
        return
    if place.file is not None and f"sqlite:///{place.file.resolve().as_posix()}" == tracking_uri():
        raise ConfigError(f"storage: {place.shown} is MLflow's own database; name another for the study")
    study = open_study(open_storage(place), place, config.study, objective=config.objective, space=space.text())
    shown = Resolved(replace(config, storage=config.storage and place.shown), resolved.origins)
    by_mlflow = _attach(study)
    settings = {**settings_of(config, "search"), "storage": place.shown}
    with tracked_run("search", settings=settings, config=to_yaml(shown), work=config.work) as tracked:
        _remember_run(study, tracked, by_mlflow=by_mlflow)
        ensemble, cached, anchor_px = _prepare(config, tracked)
        fixed = _fixed_head(config, space)
        agree(study, place, {"cache": cached.key, "anchor_px": anchor_px, "head": fixed})
        _run_trials(config, study, place, space, cached, anchor_px, tracked)
        # One command finishes the study; others that worked on it wait and find it finished
        with locked(place, "finish", config.study):
            _finish(config, study, space, ensemble, tracked)


def _check(resolved: Resolved, space: Space) -> None:
    config, objectives = resolved.config, OBJECTIVES[resolved.config.objective]
    if config.year == "all":
        raise ConfigError("year: a study is of one test year; name it with --year")
    if not config.freeze:
        raise ConfigError("freeze: a study fits heads on cached features of a frozen backbone; leave --freeze out")
    if not re.fullmatch(r"[\w.-]+", config.study):
        raise ConfigError(f"study: {config.study!r} also names a folder; use letters, digits, dots, _ and - alone")
    if len(objectives) > 1 and config.pruner != "none" and resolved.origins["pruner"] != "default":
        raise ConfigError(f"pruner: with two objectives no trial can be pruned; leave --pruner {config.pruner} out")
    check_sampler(config.sampler, objectives=len(objectives))
    study_size(space, config.trials, grid=config.sampler == "grid")


def _dashboard(place: Place) -> str:
    install = "" if importlib.util.find_spec("optuna_dashboard") else "pip install optuna-dashboard && "
    address = str(place.file) if place.is_journal else place.shown
    return f"open the study in a browser with: {install}optuna-dashboard '{address}'"


def _attach(study: Study) -> bool:
    """Go on with the study's own run, unless `mlflow run` has started one for this command; whether it has."""
    if "MLFLOW_RUN_ID" in os.environ:
        return True
    if known := study.user_attrs.get(_RUN):
        os.environ["MLFLOW_RUN_ID"] = known
    return False


def _remember_run(study: Study, tracked: TrackedRun, *, by_mlflow: bool) -> None:
    known = study.user_attrs.get(_RUN)
    if by_mlflow and known:
        tracked.link({"study": known})
    elif known != tracked.id:
        study.set_user_attr(_RUN, tracked.id)
    tracked.tags({"fcer.study": study.study_name})


def _prepare(config: Config, tracked: TrackedRun) -> tuple[YearEnsemble, FeatureCache, float]:
    """Everything that trials build on. Nothing of the test year is read."""
    (ensemble,) = year_ensembles(config, [int(config.year)], tracked, compare=False)
    fold = ensemble.backbone.fold
    dataset = open_data(config, (*fold.train, *fold.validation))
    teaching = teaching_of(config, ensemble, dataset)
    cached = cache_features(teaching, config.work / "cache" / "features")
    anchor_px = settle_anchor(config.anchor, cached)
    gather_region(cached.validation, anchor_px)  # what cannot be scored is refused here, not in every worker
    return ensemble, cached, anchor_px


def _fixed_head(config: Config, space: Space) -> str:
    """The settings of the head that are not searched."""
    searched = {dimension.name.partition(".")[0] for dimension in space.dimensions}
    settings = asdict(head_settings(config)).items()
    return json.dumps({name: value for name, value in settings if f"head_{name}" not in searched})


def _run_trials(
    config: Config,
    study: Study,
    place: Place,
    space: Space,
    cached: FeatureCache,
    anchor_px: float,
    tracked: TrackedRun,
) -> None:
    grid = config.sampler == "grid"
    size = study_size(space, config.trials, grid=grid)
    queue = TrialQueue(study, place, space, config.trials, grid=grid)
    queue.requeue_dead()
    if progress_of(study.get_trials(deepcopy=False)).done >= size:
        return
    job = Job(
        place=place,
        study=config.study,
        space=space,
        trials=config.trials,
        sampler=config.sampler,
        pruner=config.pruner,
        objective=config.objective,
        cache=cached.folder.resolve(),
        anchor_px=anchor_px,
        head=asdict(head_settings(config)),
        seed=config.seed,
        session=begin_session(study, place),
    )
    with closing(Board(study, size)) as board:
        try:
            exits = run_crew(job, config.workers, lambda worker: _follow(worker, config, tracked, board))
        finally:
            queue.requeue_dead()  # at once, for commands elsewhere
    lost = sum(code != 0 for code in exits)
    done = progress_of(study.get_trials(deepcopy=False)).done
    if done < size:
        raise FcerError(
            f"study: {lost} of {len(exits)} workers ended early, with {done} of {size} trials done; "
            "start the same command again: it goes on from there"
        )
    if lost:
        warnings.warn(f"{lost} of {len(exits)} workers ended early; others did their trials", FcerWarning, stacklevel=2)


def _follow(worker: Worker, config: Config, tracked: TrackedRun, board: Board) -> None:
    """Log one worker's trials, each to a run of its own."""
    for begun in worker.begun():
        board.begin()
        settings = {"trial": begun.number, "study": config.study, **_head(config, begun)}
        with (
            suppress(_TrialFailedError),
            tracked_run(f"trial {begun.number}", settings=settings, parent=tracked) as run,
        ):
            ended = worker.ended() or Ended(begun.number, "failed", None, [], "its process was killed")
            _log_trial(run, begun, ended)
            if ended.scores:
                tracked.metrics({"study/auroc": ended.scores.auroc}, step=begun.number)
            if ended.state == "failed":
                raise _TrialFailedError
        board.update()


def _head(config: Config, begun: Begun) -> dict[str, object]:
    defaults = {key: getattr(config, key) for key in fields() if key.startswith("head_")}
    return {**defaults, **begun.settings}


def _log_trial(run: TrackedRun, begun: Begun, ended: Ended) -> None:
    run.curves(row for record in ended.records for row in epoch_rows(record))
    if ended.scores:
        auroc, auprc, fidelity, epoch = ended.scores
        run.metrics({"best/val_auroc": auroc, "best/val_auprc": auprc, "best/fidelity": fidelity, "best/epoch": epoch})
    retry = {} if begun.retry_of is None else {"fcer.retry_of": str(begun.retry_of)}
    reason = {"fcer.trial_failure": ended.reason} if ended.reason else {}
    run.tags({"fcer.trial_state": ended.state, "fcer.paper": str(begun.paper).lower(), **retry, **reason})


def _finish(config: Config, study: Study, space: Space, ensemble: YearEnsemble, tracked: TrackedRun) -> None:
    """Write and log what came of the study, and refit its best head where that is not done yet."""
    trials = study.get_trials(deepcopy=False)
    best, paper, progress = best_trial(trials), paper_trial(trials), progress_of(trials)
    if best is None:
        reasons = [trial.user_attrs[FAILURE] for trial in trials if FAILURE in trial.user_attrs]
        raise FcerError(
            f"study: none of {progress.done} trials is complete ({reasons[0] if reasons else 'all pruned'})"
        )
    settings = space.settings(best.params)
    written = write_results(_folder(config), study, space, OBJECTIVES[config.objective])
    for path in (*written, _write_best(config, settings)):
        tracked.file(path, "study")
    tracked.metrics({f"trials/{name}": count for name, count in progress._asdict().items()})
    tracked.metrics({f"importance/{name}": share for name, share in importances(study).items()})
    tracked.tags({f"fcer.best.{name}": str(value) for name, value in settings.items()})
    tracked.metrics({"best/trial": best.number, "best/val_auroc": best.values[0]})
    against = "the paper's setting has no score"
    if paper:
        gained = best.values[0] - paper.values[0]
        tracked.metrics({"paper/val_auroc": paper.values[0], "gain/val_auroc": gained})
        against = f"{gained:+.4f} against the paper's setting ({paper.values[0]:.4f})"
    print(f"best of {progress.done} trials: trial {best.number}, validation AUROC {best.values[0]:.4f}, {against}")
    if study.user_attrs.get(_REFITTED) == best.number:
        print("the best head was refitted and registered before")
    else:
        _refit(replace(config, **settings), best.number, ensemble, tracked)
        study.set_user_attr(_REFITTED, best.number)
    print(f"next: fcer evaluate --config {_folder(config) / 'best.yaml'}")


def _refit(config: Config, number: int, ensemble: YearEnsemble, tracked: TrackedRun) -> None:
    """Fit a trial's head once more, in a run of its own: the study's would mix the curves of several bests."""
    settings = {"trial": number, "study": config.study, **settings_of(config, "distill")}
    # As many threads as the trial had: the head is then the trial's to the last bit
    with (
        tracked_run(f"refit trial {number}", settings=settings, parent=tracked) as below,
        torch_threads(threads_each(config.workers)),
    ):
        distill_year(config, ensemble, below)


def _folder(config: Config) -> Path:
    return config.work / "studies" / config.study


def _write_best(config: Config, settings: dict[str, object]) -> Path:
    """The best setting with all else that differs from the defaults: a configuration of its own."""
    given = {key: getattr(config, key) for key in COMMANDS["distill"].options if key != "workers"}
    differing = {key: value for key, value in {**given, **settings}.items() if value != fields()[key].default}
    path = _folder(config) / "best.yaml"
    with atomic_path(path) as partial:
        partial.write_text(settings_yaml(differing, f"fcer evaluate --config {path}"), encoding="utf-8")
    return path

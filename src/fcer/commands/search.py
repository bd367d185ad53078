"""`fcer search`: an Optuna study over the head, each trial a run of its own, and the best head refitted."""

import os
import re
import shutil
import subprocess
from dataclasses import replace

from fcer.commands import recorded_of
from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.errors import ConfigError
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.study import Study
from fcer.runtime.work import Work
from fcer.search.head_search import HeadSearch
from fcer.search.queue import study_size
from fcer.search.space import Space, read_space
from fcer.search.storage import TrialStore, open_storage, parse_store
from fcer.search.study import OBJECTIVES, OptunaStudy, open_study
from fcer.tracking.server import tracking_uri

__all__ = ["run"]

_RUN = "mlflow_run"
"""Under which name Optuna's study remembers its run in MLflow."""


def run(resolved: Resolved) -> None:
    """Begin or join the search, have all its trials done, and refit the best."""
    config = resolved.config
    space = read_space(config.space)
    _check(resolved, space)
    store = parse_store(config.storage, Work(config.work).trials)
    if config.dashboard:
        _dashboard(store)
        return
    if store.file is not None and f"sqlite:///{store.file.resolve().as_posix()}" == tracking_uri():
        raise ConfigError(f"storage: {store.shown} is MLflow's own database; name another for the study")
    trials = open_study(open_storage(store), store, config.study, objective=config.objective, space=space.text())
    shown = replace(config, storage=config.storage and store.shown)
    settings = {**recorded_of(config, "search"), "storage": store.shown}
    # `mlflow run` has begun a run for this command; else the search's own goes on
    by_mlflow, known = "MLFLOW_RUN_ID" in os.environ, trials.user_attrs.get(_RUN)
    attach = None if by_mlflow else known
    with command_run("search", resolved, settings, of=config.study, shown=shown, attach=attach, charts=True) as log:
        _remember_run(trials, log, known if by_mlflow else None)
        print(HeadSearch(Study(resolved, log=log), trials, store, space, log).run())


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
    study_size(space, config.trials, grid=config.sampler == "grid")


def _dashboard(store: TrialStore) -> None:
    """Serve the study's trials until Ctrl-C, where optuna-dashboard is installed."""
    program, address = shutil.which("optuna-dashboard"), str(store.file) if store.is_journal else store.url
    if program is None:
        shown = str(store.file) if store.is_journal else store.shown
        print(f"open the study in a browser with: pip install 'fcer[dashboard]' && optuna-dashboard '{shown}'")
        return
    subprocess.run([program, address], check=False)


def _remember_run(trials: OptunaStudy, log: RunLog, earlier: str | None) -> None:
    """Link to the run that the search began with, or remember this one as that."""
    if earlier:
        log.link({"study": earlier})
    elif trials.user_attrs.get(_RUN) != log.id:
        trials.set_user_attr(_RUN, log.id)
    log.tags({"fcer.study": trials.study_name})

"""A search over the head, from a study's cached features to its best head, refitted: each trial a run of its own."""

import json
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from optuna.trial import FrozenTrial

from fcer.config import Config
from fcer.config.fields import fields
from fcer.config.groups import STEPS, recorded
from fcer.errors import FcerError, warn
from fcer.models.thresholds import settle_threshold
from fcer.pipeline.ensembles import YearEnsemble, teaching_of
from fcer.pipeline.families import train_families
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.students import distil_student
from fcer.pipeline.study import Study
from fcer.runtime.files import write_text
from fcer.search.board import Board
from fcer.search.crew import run_crew, threads_each
from fcer.search.page import markdown_of
from fcer.search.queue import TrialQueue, study_size
from fcer.search.references import SCORE_NAMES, beside_references, reference_rows
from fcer.search.results import importances, settings_yaml, write_results
from fcer.search.scores import reference_scores
from fcer.search.space import Space
from fcer.search.storage import TrialStore, locked
from fcer.search.study import (
    FAILURE,
    OBJECTIVES,
    REFERENCES,
    SCORES,
    OptunaStudy,
    agree,
    begin_session,
    best_trial,
    paper_trial,
    progress_of,
)
from fcer.search.trial_runs import TrialRuns
from fcer.search.worker import Job
from fcer.training.distillation import settle_anchor
from fcer.training.feature_cache import FeatureCache, cache_features
from fcer.training.head_settings import HeadSettings
from fcer.training.threads import torch_threads
from fcer.training.validation_region import gather_region

__all__ = ["HeadSearch"]

_REFITTED = "refitted"
"""Under which name Optuna's study remembers which trial was refitted last."""
_CHARTED = "fcer.charted"
"""The tag of the search's run that says how its trials are to be charted."""


@dataclass(frozen=True)
class _Prepared:
    """Everything that trials build on. Nothing of the test year was read for it."""

    ensemble: YearEnsemble
    cached: FeatureCache
    anchor_px: float
    threshold: float
    references: dict[str, dict[str, float]]
    """What the backbone's entropy and probability score on the same pixels."""


@dataclass(frozen=True)
class HeadSearch:
    """One command's part in a search, which other commands may share."""

    study: Study
    """Ours: it gives members, cached features and the refitted student."""
    trials: OptunaStudy
    store: TrialStore
    space: Space
    log: RunLog

    @property
    def config(self) -> Config:
        """Of the study."""
        return self.study.config

    def run(self) -> str:
        """Have all trials done, and refit the best; what to do next."""
        prepared = self._prepare()
        asked = {"cache": prepared.cached.key, "anchor_px": prepared.anchor_px, "head": self._fixed_head()}
        agree(self.trials, self.store, {**asked, "threshold": prepared.threshold})
        self.trials.set_user_attr(REFERENCES, prepared.references)
        self._run_trials(prepared)
        # One command finishes the search; others that worked on it wait and find it finished
        with locked(self.store, "finish", self.config.study):
            self._finish(prepared.ensemble)
        return f"next: fcer evaluate --config {self._folder / 'best.yaml'}"

    @property
    def _folder(self) -> Path:
        return self.study.setup.work.searches / self.config.study

    def _prepare(self) -> _Prepared:
        (ensemble,) = self.study.ensembles([int(self.config.year)], compare=False)
        families = train_families(self.study.setup, ensemble, [self.config.teacher], print)
        cached = cache_features(teaching_of(self.study.setup, ensemble, families), self.study.setup.work.features)
        threshold = settle_threshold(self.config.threshold, ensemble.backbone.pos_weight)
        anchor_px = settle_anchor(self.config.anchor, cached, threshold)
        # what cannot be scored is refused here, not in every worker
        region = gather_region(cached.validation, anchor_px, threshold)
        return _Prepared(ensemble, cached, anchor_px, threshold, reference_scores(region))

    def _fixed_head(self) -> str:
        """The settings of the head that are not searched."""
        searched = {dimension.name.partition(".")[0] for dimension in self.space.dimensions}
        settings = asdict(HeadSettings.of(self.config)).items()
        return json.dumps({name: value for name, value in settings if f"head_{name}" not in searched})

    def _run_trials(self, prepared: _Prepared) -> None:
        config, grid = self.config, self.config.sampler == "grid"
        size = study_size(self.space, config.trials, grid=grid)
        queue = TrialQueue(self.trials, self.store, self.space, config.trials, grid=grid)
        queue.requeue_dead()
        runs = TrialRuns(self.trials, self.space, config, self.log)
        runs.log_unlogged()
        if self._done() >= size:
            return
        with closing(Board(self.trials, size, SCORE_NAMES[OBJECTIVES[config.objective][0]])) as board:
            try:
                exits = run_crew(self._job(prepared), config.workers, lambda worker: runs.follow(worker, board))
            finally:
                queue.requeue_dead()  # at once, for commands elsewhere
        lost = sum(code != 0 for code in exits)
        if self._done() < size:
            raise FcerError(
                f"study: {lost} of {len(exits)} workers ended early, with {self._done()} of {size} trials done; "
                "start the same command again: it goes on from there"
            )
        if lost:
            warn(f"{lost} of {len(exits)} workers ended early; others did their trials")

    def _done(self) -> int:
        return progress_of(self.trials.get_trials(deepcopy=False)).done

    def _job(self, prepared: _Prepared) -> Job:
        config = self.config
        return Job(
            store=self.store,
            study=config.study,
            space=self.space,
            trials=config.trials,
            sampler=config.sampler,
            pruner=config.pruner,
            objective=config.objective,
            cache=prepared.cached.folder.resolve(),
            anchor_px=prepared.anchor_px,
            threshold=prepared.threshold,
            head=asdict(HeadSettings.of(config)),
            seed=config.seed,
            session=begin_session(self.trials, self.store),
        )

    def _finish(self, ensemble: YearEnsemble) -> None:
        """Write and log what came of the search, and refit its best head where that is not done yet."""
        trials = self.trials.get_trials(deepcopy=False)
        best, paper, progress = best_trial(trials), paper_trial(trials), progress_of(trials)
        if best is None:
            reasons = [trial.user_attrs[FAILURE] for trial in trials if FAILURE in trial.user_attrs]
            raise FcerError(
                f"study: none of {progress.done} trials is complete ({reasons[0] if reasons else 'all pruned'})"
            )
        settings = self.space.settings(best.params)
        written = write_results(self._folder, self.trials, self.space, OBJECTIVES[self.config.objective])
        for path in (*written, self._write_best(settings)):
            self.log.file(path, "study")
        self.log.metrics({f"trials/{name}": count for name, count in progress._asdict().items()})
        self.log.metrics({f"importance/{name}": share for name, share in importances(self.trials).items()})
        self.log.tags({f"fcer.best.{name}": str(value) for name, value in settings.items()})
        self.log.tags({_CHARTED: "trials"})
        self.log.note(markdown_of(self.trials, self.space, OBJECTIVES[self.config.objective]))
        name = OBJECTIVES[self.config.objective][0]
        self.log.metrics({"best/trial": best.number, **_val(best, "best")})
        against = "the paper's setting has no score"
        if paper:
            gained = best.values[0] - paper.values[0]
            self.log.metrics({**_val(paper, "paper"), f"gain/val_{name}": gained})
            against = f"{gained:+.4f} against the paper's setting ({paper.values[0]:.4f})"
        said = SCORE_NAMES[name]
        print(f"best of {progress.done} trials: trial {best.number}, validation {said} {best.values[0]:.4f}, {against}")
        for row in reference_rows(self.trials):
            self.log.metrics({f"{row['name']}/val_{key}": row[key] for key in ("auroc", "auroc_within")})
        print(beside_references(self.trials, best))
        if self.trials.user_attrs.get(_REFITTED) == best.number:
            print("the best head was refitted and registered before")
        else:
            self._refit(replace(self.config, **settings), best.number, ensemble)
            self.trials.set_user_attr(_REFITTED, best.number)

    def _refit(self, config: Config, number: int, ensemble: YearEnsemble) -> None:
        """Fit a trial's head once more, in a run of its own: the search's would mix the curves of several bests."""
        settings = {"trial": number, "study": config.study, **recorded(config, STEPS["distill"])}
        # As many threads as the trial had: the head is then the trial's to the last bit
        with (
            self.log.child(f"refit trial {number}", settings) as below,
            torch_threads(threads_each(config.workers)),
        ):
            distil_student(Study(config).setup, ensemble, below, print, nested=False)

    def _write_best(self, settings: dict[str, object]) -> Path:
        """The best setting with all else that differs from the defaults: a configuration of its own."""
        given = {key: getattr(self.config, key) for key in STEPS["distill"] if key != "workers"}
        differing = {key: value for key, value in {**given, **settings}.items() if value != fields()[key].default}
        path = self._folder / "best.yaml"
        return write_text(path, settings_yaml(differing, f"fcer evaluate --config {path}"))


def _val(trial: FrozenTrial, whose: str) -> dict[str, float]:
    """What a trial scored on the validation years, as metrics; trials of older versions know AUROC alone."""
    told = trial.user_attrs[SCORES]
    return {f"{whose}/val_{name}": told[name] for name in ("auroc", "auroc_within") if name in told}

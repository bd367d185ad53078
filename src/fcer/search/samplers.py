"""Samplers and pruners by name."""

import importlib.util
import warnings

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler

from fcer.errors import ConfigError

__all__ = ["REPORT_EVERY", "check_sampler", "draw_sampler_seed", "make_pruner", "make_sampler"]

REPORT_EVERY = 5
"""Epochs between two looks of the pruner: each costs a write to the storage, and an epoch takes milliseconds."""


def check_sampler(name: str, *, objectives: int) -> None:
    """Refuse a sampler that cannot be used here."""
    if name == "cmaes" and objectives > 1:
        raise ConfigError("sampler: cmaes knows one objective only; choose tpe, or --objective auroc")
    if name == "cmaes" and importlib.util.find_spec("cmaes") is None:
        raise ConfigError("sampler: cmaes needs the package cmaes; install it with pip install cmaes")


def draw_sampler_seed(seed: int, session: int, worker: int) -> int:
    """A seed for one worker of one command: the same one would repeat the trials of others."""
    return int(np.random.SeedSequence((seed, session, worker)).generate_state(1)[0])


def make_sampler(name: str, seed: int) -> BaseSampler:
    """The sampler of this name. On a grid every trial is told what to try: nothing is left to draw."""
    if name == "tpe":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            # in groups, or what is searched under a condition would be drawn at random
            return TPESampler(seed=seed, group=True, multivariate=True)
    if name == "gp":
        return GPSampler(seed=seed, warn_independent_sampling=False)
    if name == "cmaes":
        return CmaEsSampler(seed=seed, warn_independent_sampling=False)
    return RandomSampler(seed=seed)


def make_pruner(name: str) -> BasePruner:
    """The pruner of this name; a trial reports its best AUROC so far, after every few epochs."""
    pruners: dict[str, optuna.pruners.BasePruner] = {
        "median": MedianPruner(n_warmup_steps=2 * REPORT_EVERY),
        "hyperband": HyperbandPruner(min_resource=REPORT_EVERY),
        "none": NopPruner(),
    }
    return pruners[name]

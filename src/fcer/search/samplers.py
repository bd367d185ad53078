"""Samplers and pruners by name. CMA-ES is not among them: Optuna unpickles its state from the storage."""

import warnings

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

__all__ = ["REPORT_EVERY", "draw_sampler_seed", "make_pruner", "make_sampler"]

REPORT_EVERY = 5
"""Epochs between two looks of the pruner: each costs a write to the storage, and an epoch takes milliseconds."""


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
    return RandomSampler(seed=seed)


def make_pruner(name: str) -> BasePruner:
    """The pruner of this name; a trial reports its best AUROC so far, after every few epochs."""
    pruners: dict[str, optuna.pruners.BasePruner] = {
        "median": MedianPruner(n_warmup_steps=2 * REPORT_EVERY),
        "hyperband": HyperbandPruner(min_resource=REPORT_EVERY),
        "none": NopPruner(),
    }
    return pruners[name]

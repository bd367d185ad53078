"""`fcer train`: the members of a test year's ensemble, each a run of its own."""

from fcer.commands.tracked import command_run, year_names
from fcer.config import Resolved
from fcer.data.folds import Fold
from fcer.errors import ConfigError
from fcer.pipeline.members import compare_members, members_of, plan_members
from fcer.pipeline.study import Study
from fcer.training import World

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Train what is missing, year by year, and compare it with persistence."""
    study = Study(resolved)
    asked = _asked_folds(resolved, study)
    world = World.from_environment()
    if world.size > 1 and resolved.config.cluster:
        raise ConfigError("cluster: torchrun spreads one member over processes, a cluster members; use one of the two")
    if not world.is_main:
        # One of several processes of torchrun: it works along, and the first one speaks
        for planned in (one for folds in asked for one in plan_members(study.setup, folds)):
            planned.train()
        return
    of = year_names(study.setup) if resolved.config.fold is None else f"fold {resolved.config.fold}"
    with command_run("train", resolved, of=of) as log:
        study.under(log).train(asked)
        for folds in asked:
            members = members_of(study.setup, folds)
            for year in folds[0].test:
                compare_members(study.setup, year, members, log, print)
    print("next: fcer evaluate with the same options, or make ui to see the runs")


def _asked_folds(resolved: Resolved, study: Study) -> list[list[Fold]]:
    """The one fold that was named, or those that make the fair teacher of each test year."""
    config, setup = resolved.config, study.setup
    if config.fold is None:
        return [setup.member_folds(year) for year in setup.ensemble_years]
    if config.fold >= len(setup.folds):
        last = len(setup.folds) - 1
        raise ConfigError(f"fold: {config.split} has no fold {config.fold}; choose one from 0 to {last}")
    fold = setup.folds[config.fold]
    if resolved.origins["year"].startswith("--") and config.year not in fold.test:
        years = ", ".join(map(str, fold.test))
        raise ConfigError(f"fold: fold {config.fold} tests on {years}, not on {config.year}; name one of the two")
    if resolved.origins["members"].startswith("--"):
        raise ConfigError("fold: with --fold one member is trained; leave --members out, or --fold")
    return [[fold]]

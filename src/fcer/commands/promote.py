"""`fcer promote`: a run's student becomes the champion, unless it is worse than the present one."""

import sys

from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.errors import ConfigError, FcerError, warn
from fcer.pipeline.run_log import RunLog
from fcer.registry.promotion import Promotion, find_challenger, promote
from fcer.registry.standing import KEPT, Standing

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Decide, move the alias, and log why; a champion that stays is a failure, which a pipeline must see."""
    config = resolved.config
    challenger = find_challenger(config.run)
    if config.run is None:
        _ask(challenger)
    # the run in full, also where the newest was taken
    settings = {"run": config.run or challenger.run_id or "none", "challenger_version": challenger.version}
    with command_run("promote", resolved, settings, of=f"version {challenger.version}") as log:
        promotion = promote(challenger, log.id)
        _log(log, challenger, promotion)
        outcome, reason, warning = promotion.decision
        log.note(reason)
        if warning:
            warn(warning)
        if outcome == KEPT:
            raise FcerError(reason)
        print(reason)


def _ask(challenger: Standing) -> None:
    """Where no run is named, ask a person whether the newest student is to be promoted."""
    newest = f"the newest student is version {challenger.version}, of run {challenger.run_id}"
    if not sys.stdin.isatty():
        raise ConfigError(f"run: say whose student is to be promoted; {newest}: --run {challenger.run_id}")
    if input(f"{newest}. Promote it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ConfigError("run: nothing was promoted; name another student's run with --run")


def _log(log: RunLog, challenger: Standing, promotion: Promotion) -> None:
    champion = promotion.champion
    log.params({"champion_version": champion.version if champion else "none"})
    values = {
        "challenger/val_auroc": challenger.auroc,
        "challenger/val_auroc_low": challenger.low,
        "challenger/val_auroc_high": challenger.high,
        "champion/val_auroc": champion.auroc if champion else None,
    }
    log.metrics({name: value for name, value in values.items() if value is not None})
    log.tags({"fcer.promotion": promotion.decision.outcome, "fcer.promotion_reason": promotion.decision.reason})
    runs = {"challenger": challenger.run_id, "champion": champion.run_id if champion else None}
    log.link({name: run_id for name, run_id in runs.items() if run_id})

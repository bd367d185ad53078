"""Which of two students should be champion: decided by what is registered of them, and by nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fcer.registry.paired import worse_by_fire

__all__ = ["ALREADY", "KEPT", "PROMOTED", "Decision", "Standing", "decide"]

PROMOTED = "promoted"
KEPT = "kept"
ALREADY = "already champion"

_BY_HAND = "or set the alias by hand in the MLflow UI"


@dataclass(frozen=True)
class Standing:
    """What is registered of a student; none: the version does not say."""

    version: str
    run_id: str | None = None
    """Of the run that registered it."""
    auroc: float | None = None
    """On the validation years, within the anchor of fire."""
    low: float | None = None
    """From here to `high` it plausibly lies: 95 %, over draws of fires."""
    high: float | None = None
    anchor_px: float | None = None
    fires: int | None = None
    """How many the interval is drawn from."""
    years: str | None = None
    """Validation years."""
    data: str | None = None
    """Fingerprint of their fires."""
    by_fire: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Validation scores (auroc, auroc_within, nll) of each fire, as far as they are recorded."""
    verified: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same of verified forecasts (with the loss of skill for nll)."""
    alarm: str | None = None
    """Of verified forecasts: what promise they did not keep."""
    alias: str = "champion"
    """What it can be promoted to."""


class Decision(NamedTuple):
    """What becomes of a challenger, why, and what should be known of the comparison."""

    outcome: str
    reason: str
    warning: str | None = None


def decide(challenger: Standing, champion: Standing | None, best: Standing | None = None) -> Decision:
    """Promote, unless the challenger is worse than the champion or cannot be compared with it.

    It is held to `best` too, the best champion so far: champions that are each a little worse than the one before
    would else lead down step by step, each within its interval.
    """
    if champion is not None and champion.version == challenger.version:
        return Decision(ALREADY, f"version {challenger.version} is champion already")
    if challenger.alarm:
        stays = f"version {champion.version} stays champion" if champion else "there is still no champion"
        alarm = f"verified forecasts raised an alarm ({challenger.alarm})"
        reason = f"{stays}: version {challenger.version}'s {alarm}; distil a better student, {_BY_HAND}"
        return Decision(KEPT, reason)
    if champion is None:
        return Decision(PROMOTED, f"version {challenger.version} is champion now: there was none")
    if problem := _incomparable(challenger, champion):
        return Decision(KEPT, f"version {champion.version} stays champion: {problem}")
    rivals = [(champion, "")]
    if best is not None and best.version not in (champion.version, challenger.version):
        rivals.append((best, ", the best champion so far"))
    warning = _said(_unlike(challenger, champion), champion.alarm)
    for rival, which in rivals:
        if why := _worse(challenger, rival):
            why = f"version {challenger.version} has {_scored(challenger)}, {why} of version {rival.version}{which}"
            reason = f"version {champion.version} stays champion: {why}; distil a better student, {_BY_HAND}"
            return Decision(KEPT, reason, warning)
    assert challenger.auroc is not None and champion.auroc is not None
    theirs = f"{champion.auroc:.4f} of version {champion.version}"
    beyond = ", which is not beyond the interval" if challenger.auroc < champion.auroc else ""
    reason = f"version {challenger.version} is champion now: {_scored(challenger)}, against {theirs}{beyond}"
    return Decision(PROMOTED, reason, warning)


def _worse(challenger: Standing, rival: Standing) -> str | None:
    """In what the challenger falls behind, if it does: fire by fire where that is known, and by its interval."""
    if lived := worse_by_fire(challenger.verified, rival.verified):
        return f"and in verified forecasts of the same fires {lived} than those"
    if paired := worse_by_fire(challenger.by_fire, rival.by_fire):
        return f"and on the same fires {paired} than those"
    assert challenger.auroc is not None and challenger.high is not None and rival.auroc is not None
    # Skewed draws can leave the value itself above their interval: what is better is never refused
    if rival.auroc > max(challenger.high, challenger.auroc):
        return f"too little against {rival.auroc:.4f}"
    return None


def _incomparable(challenger: Standing, champion: Standing) -> str | None:
    """Why the two cannot be compared."""
    needed = ((challenger, ("auroc", "low", "high", "fires", "anchor_px")), (champion, ("auroc", "anchor_px")))
    for standing, names in needed:
        if any(getattr(standing, name) is None for name in names):
            return (
                f"version {standing.version} does not say its validation AUROC, interval and anchor; "
                f"distil it again with this version of fcer, {_BY_HAND}"
            )
    if challenger.anchor_px != champion.anchor_px:
        return (
            f"it was validated within {champion.anchor_px:g} px of fire and version {challenger.version} within "
            f"{challenger.anchor_px:g} px, which cannot be compared; distil with --anchor {champion.anchor_px!r}, "
            f"{_BY_HAND}"
        )
    return None


def _said(unlike: str | None, alarm: str | None) -> str | None:
    """What should be known besides, also that the champion itself is in trouble."""
    trouble = f"the champion's own verified forecasts raised an alarm ({alarm})" if alarm else None
    return "; ".join(text for text in (unlike, trouble) if text) or None


def _scored(standing: Standing) -> str:
    fires = (
        "one fire, which has no interval"
        if standing.fires == 1
        else f"{standing.low:.4f} to {standing.high:.4f} over draws of {standing.fires} fires"
    )
    return f"validation AUROC {standing.auroc:.4f} ({fires}) within {standing.anchor_px:g} px of fire"


def _unlike(challenger: Standing, champion: Standing) -> str | None:
    """What to say where the two were not, or perhaps not, validated on the same fires."""
    if challenger.data is not None and challenger.data == champion.data:
        return None
    ours, theirs = (f"version {s.version} on {s.years or 'unknown years'}" for s in (challenger, champion))
    return f"{ours} and {theirs} were not validated on the same fires: part of their difference may be the fires'"

"""A calibration's zones adapted to verified days, each day once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from fcer.core.adaptive import adapted_levels
from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.zones import ZoneRule
from fcer.errors import InputError
from fcer.models.calibration_files import Adaptation, Calibration
from fcer.verification.forecast import Forecast
from fcer.verification.scores import zone_miss
from fcer.verification.truth import SEEN, TruthSource

__all__ = ["Adapted", "adapt_zones"]


@dataclass(frozen=True)
class _Seen:
    """One forecast and what burnt."""

    fire: str
    probability: FloatArray
    """Calibrated."""
    burnt: BoolArray
    km2: float


@dataclass(frozen=True)
class Adapted:
    """The new calibration, and the levels by miss and day on the way to it."""

    calibration: Calibration
    levels: Mapping[float, Mapping[date, float]]


def adapt_zones(calibration: Calibration, forecasts: Iterable[Forecast], truth: TruthSource) -> Adapted:
    """Move each threshold zone's level by what it would have missed, day by day, on days not used before.

    The other families of zones keep no promise on the long run and are left out.
    """
    rules = calibration.rules_of("threshold")
    days = _days(calibration, forecasts, truth)
    if not rules or not days:
        what = "no zone to adapt" if not rules else "no verified day with fire that is new to it"
        raise InputError(f"the calibration has {what}; give maps of this student and what burnt since")
    seen = [one for some in days.values() for one in some]
    fires = sorted({one.fire for one in seen})
    if len(fires) < 2:
        raise InputError("one verified fire tells nothing of another; adapt zones to two fires at least")
    levels = {rule.miss: dict(zip(days, _followed(rule, calibration, days), strict=True)) for rule in rules}
    before = calibration.adapted
    adaptation = Adaptation(
        first=before.first if before else str(min(days)),
        last=str(max(days)),
        days=len(days) + (before.days if before else 0),
        fires=len(fires),
    )
    adapted = tuple(_moved(rule, levels[rule.miss][max(days)], calibration, seen, len(fires)) for rule in rules)
    return Adapted(replace(calibration, rules=adapted, adapted=adaptation), levels)


def _days(calibration: Calibration, forecasts: Iterable[Forecast], truth: TruthSource) -> dict[date, list[_Seen]]:
    """What was seen on each day after those that the zones are adapted to already, in order."""
    after = date.fromisoformat(calibration.adapted.last) if calibration.adapted else date.min
    days: dict[date, list[_Seen]] = {}
    for forecast in sorted(forecasts, key=lambda one: (one.day, one.fire, one.key)):
        if forecast.student != calibration.student or forecast.day <= after:
            continue
        found = truth.of(forecast)
        if found.status == SEEN and found.burnt is not None and found.burnt.any():
            height_m, width_m = forecast.pixel_m
            one = _Seen(forecast.fire, forecast.read().probability, found.burnt, height_m * width_m / 1e6)
            days.setdefault(forecast.day, []).append(one)
    return days


def _followed(rule: ZoneRule, calibration: Calibration, days: Mapping[date, list[_Seen]]) -> list[float]:
    def missed(seen: list[_Seen]) -> Callable[[float], float]:
        def of(level: float) -> float:
            return float(np.mean([zone_miss(one.burnt, _zone(one, level, calibration)) for one in seen]))

        return of

    return adapted_levels(rule.level, rule.miss, [missed(seen) for seen in days.values()])


def _zone(one: _Seen, level: float, calibration: Calibration) -> BoolArray:
    """Where the zone of a level lies: the map holds calibrated probabilities, the level is of those before."""
    if np.isinf(level):
        return np.full(one.burnt.shape, level < 0) & ~np.isnan(one.probability)
    back = replace(calibration.zone_prior, weight=1 / calibration.zone_prior.weight)
    calibrated = float(calibration.recalibration.apply(back.apply(level)))
    return np.asarray(one.probability >= np.float32(calibrated))


def _moved(rule: ZoneRule, level: float, calibration: Calibration, seen: list[_Seen], fires: int) -> ZoneRule:
    level = min(level, float(rule.family.levels[0]))  # the smallest zone that there is
    area = float(np.mean([np.count_nonzero(_zone(one, level, calibration)) * one.km2 for one in seen]))
    return replace(
        rule,
        level=level,
        bound=rule.miss,
        n_fires=fires,
        reserved=1,
        area_km2=area,
        area_2n_km2=area,
        cross_bound=None,
    )

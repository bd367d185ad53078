"""Guaranteed zones by method, calibrated on some fires and held to others: `zones.csv` and its paired tests."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from fcer.core.arrays import IntArray
from fcer.core.bootstrap import bootstrap_median, bootstrap_ratio, draw_fires, percentile_interval
from fcer.core.recalibration import NONE, Recalibration
from fcer.core.risk_control import smallest_miss, zone_as_if
from fcer.core.statistics import holm_correction, wilcoxon_test
from fcer.core.zones import FAMILIES, FamilyName, ZoneRule
from fcer.errors import warn
from fcer.evaluation.comparison import TEST_COLUMNS
from fcer.evaluation.zones import MISSES, FireZones, Measure, fit_family, fit_rules, measure_once, measure_zones
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["DECISION_MISS", "ZoneTables", "area_tests", "cross_zone_tables", "zone_tables"]

DECISION_MISS = 0.1
"""At which methods are compared by the area of their zones."""


class ZoneTables(NamedTuple):
    """Zones of all methods on one year."""

    table: pd.DataFrame
    """One row per method, family and nominal miss."""
    by_fire: pd.DataFrame
    """The same by fire: what paired tests compare."""

    @classmethod
    def join(cls, parts: Sequence["ZoneTables"]) -> "ZoneTables":
        """All of them, one below the other; numbers stay numbers where a part has none."""
        return cls(*(pd.concat(tables, ignore_index=True).infer_objects() for tables in zip(*parts, strict=True)))


def zone_tables(
    calibration: Sequence[PredictedMaps],
    test: PredictedMaps,
    methods: Sequence[str],
    *,
    misses: Sequence[float] = MISSES,
    families: Sequence[FamilyName] = FAMILIES,
    recalibrations: Mapping[str, Recalibration] | None = None,
    n_draws: int = 1000,
    seed: int = 0,
    fitted: Literal["validation", "cross"] = "validation",
    measure: Measure = measure_zones,
) -> ZoneTables:
    """Zones calibrated on the fires of some files, on the fires of another.

    The guarantee is that of fires which could change places, under one model. Files of several years come from several
    models, each of which had not seen its fires: what their fires promise then holds as far as the models are alike,
    and `bound`, which holds whatever the models, can lie above the nominal miss.

    Columns of the table: `realised_miss` over the `fires` with burnt pixels and `area_km2` over all days of all fires,
    each with its 95 % interval over draws of fires; `times_burnt`, that area against the burnt one; `exceeds`, whether
    the whole interval of the realised miss lies above the nominal one. A miss that the calibration fires cannot
    guarantee has a row without a zone (and a warning), since families do not calibrate on the same fires.

    `fitted` is `cross` where test years calibrate each other, and `validation` where validation fires do.
    """
    rows: list[dict[str, Any]] = []
    by_fire: list[pd.DataFrame] = []
    refused: dict[str, None] = {}
    years = " ".join(str(maps.year) for maps in calibration)
    for method in methods:
        recalibration = (recalibrations or {}).get(method, NONE)
        for name in families:
            fires = fit_family(calibration, method, name, recalibration, measure_maps=measure)
            held = measure(test, method, fires.family, recalibration)
            draws = draw_fires(len(held.fire_id), n_draws, np.random.default_rng((seed, test.year)))
            n_fires = int(fires.has_burnt.sum())
            known = {"n_calibration_fires": n_fires, "calibration": years, "kappa": fires.family.kappa}
            for miss in misses:
                key: dict[str, Any] = {"year": test.year, "method": method, "family": name, "nominal_miss": miss}
                key["fitted"] = fitted
                if n_fires < 2 or 0 < miss < smallest_miss(n_fires):
                    refused[f"{miss:g} of {name} zones ({n_fires} fire{'s' * (n_fires != 1)})"] = None
                    rows.append({**key, **known})
                    continue
                [rule] = fit_rules(fires, [miss])
                place = int(np.flatnonzero(held.family.levels == rule.level)[0])
                later = held.area_km2[:, zone_as_if(fires.miss, miss, 2)].mean()
                rows.append({**key, **known, **_row(held, rule, place, draws), "area_2n_km2": later})
                by_fire.append(pd.DataFrame({**key, **held.at(place)}))
    if refused and fitted == "validation":  # which somebody may want to add fires to
        names = ", ".join(maps.source for maps in calibration)
        warn(f"{names}: too few fires to guarantee a miss of {', '.join(refused)}; no such zones")
    frames = pd.concat(by_fire, ignore_index=True) if by_fire else pd.DataFrame(columns=_BY_FIRE_COLUMNS)
    return ZoneTables(pd.DataFrame(rows, columns=_COLUMNS), frames)


def cross_zone_tables(years: Sequence[PredictedMaps], methods: Sequence[str], **options: Any) -> ZoneTables:
    """Zones of each year, calibrated on the fires of all others by their own models; `options` of `zone_tables`.

    All methods stand on the same fires, and none is held to fires that any of its models had seen.
    """
    measure = measure_once()
    found = []
    for year in years:
        others = [other for other in years if other is not year]
        found.append(zone_tables(others, year, methods, **options, fitted="cross", measure=measure))
    return ZoneTables.join(found)


def area_tests(
    by_fire: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    *,
    miss: float = DECISION_MISS,
    n_draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired tests by fire of zones at one guaranteed miss: `metric` is `zone_area/FAMILY`.

    One-sided for `a`'s zone smaller than `b`'s, so that, as in all tests, a small p speaks for `a`; `median_delta` is
    the median area that it saves, in km², with its interval over fires. Methods whose zones are the same, as those of
    one probability, have no test.
    Years are tested apart and pooled. Holm's family is what one `a` is tested for in a scope.
    """
    at = by_fire[np.isclose(by_fire["nominal_miss"].astype(float), miss)]
    rows = []
    for name, part in at.groupby("family", sort=False):
        areas = part.pivot(index=["year", "fire_id"], columns="method", values="area_km2")
        scopes = [*((str(year), some) for year, some in areas.groupby(level="year")), ("pooled", areas)]
        for scope, some in scopes:
            draws = draw_fires(len(some), n_draws, np.random.default_rng(seed))
            for a, b in pairs:
                if a in some and b in some and not some[a].equals(some[b]):
                    ours, theirs = some[a].to_numpy(), some[b].to_numpy()
                    low, high = percentile_interval(bootstrap_median(theirs - ours, np.arange(len(some)), draws))
                    names = {"metric": f"zone_area/{name}", "scope": scope, "unit": "fire", "a": a, "b": b}
                    rows.append({**names, **wilcoxon_test(theirs, ours)._asdict(), "ci_low": low, "ci_high": high})
    tests = pd.DataFrame(rows, columns=TEST_COLUMNS)
    for _, family in tests.groupby(["scope", "a"]) if rows else ():
        tests.loc[family.index, "p_holm"] = holm_correction(family["p"])
    return tests


_COLUMNS = [
    *("year", "method", "family", "nominal_miss", "realised_miss", "area_km2", "fires", "fitted"),
    *("miss_low", "miss_high", "exceeds", "area_low", "area_high", "burnt_km2", "times_burnt", "tie_share"),
    *("n_calibration_fires", "calibration", "bound", "level", "kappa", "area_2n_km2"),
]
_BY_FIRE_COLUMNS = [*("year", "method", "family", "nominal_miss", "fitted", "fire_id", "miss", "area_km2", "burnt_km2")]


def _row(held: FireZones, rule: ZoneRule, place: int, draws: IntArray) -> dict[str, Any]:
    each, ones = np.arange(len(held.fire_id)), np.ones(len(held.fire_id))
    miss, area = held.miss[:, place], held.area_km2[:, place]
    if held.has_burnt.sum() < 2:
        draws = draws[:0]  # of one fire alone every draw is the same, which is no interval
    miss_low, miss_high = percentile_interval(bootstrap_ratio(miss, ones, each, draws))
    area_low, area_high = percentile_interval(bootstrap_ratio(area, ones, each, draws))
    burnt = float(held.burnt_km2.mean())
    return {
        "realised_miss": float(np.nanmean(miss)),
        "area_km2": float(area.mean()),
        "fires": int(held.has_burnt.sum()),
        "miss_low": miss_low,
        "miss_high": miss_high,
        "exceeds": float(miss_low > rule.miss),
        "area_low": area_low,
        "area_high": area_high,
        "burnt_km2": burnt,
        "times_burnt": float(area.mean()) / burnt,
        "tie_share": held.tie_share(place),
        "bound": rule.bound if rule.cross_bound is None else rule.cross_bound,
        "level": rule.level,
    }

"""Zones of predicted maps, measured and calibrated by fire.

Maps are read image by image, and what is kept is counts by fire and level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.recalibration import NONE, Recalibration
from fcer.core.regions import PIXEL_METRES
from fcer.core.risk_control import control_risk, cross_bound, zone_as_if
from fcer.core.zones import KAPPAS, FamilyName, ZoneCounts, ZoneFamily, ZoneRule
from fcer.errors import InputError
from fcer.evaluation.recalibrated import number_fires
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["MISSES", "FireZones", "Measure", "fit_family", "fit_rules", "measure_once", "measure_zones"]

MISSES = (0.05, 0.1, 0.2)
"""Expected misses that zones are drawn for unless others are asked for."""

_DESIGN_SHARE = 0.3
"""Of the calibration fires, where κ is chosen: they do not calibrate the widened zones."""
_PIXEL_KM2 = (PIXEL_METRES / 1000) ** 2


@dataclass(frozen=True)
class FireZones:
    """Every zone of a family on some fires: (fires, levels), each fire the mean of its days."""

    family: ZoneFamily
    fire_id: NDArray[np.str_]
    miss: FloatArray
    """Over days with burnt pixels; a row of NaN is a fire without any."""
    area_km2: FloatArray
    """Over all days."""
    burnt_km2: FloatArray
    """(fires,), over all days."""
    group: NDArray[np.str_]
    """(fires,): the year, or group of fires, whose model it was that had not seen them."""

    def take(self, fires: IntArray | BoolArray) -> "FireZones":
        """Some of the fires."""
        return FireZones(self.family, *(getattr(self, field.name)[fires] for field in fields(self)[1:]))

    @classmethod
    def join(cls, parts: Sequence["FireZones"]) -> "FireZones":
        """The fires of all parts, which are of one family."""
        columns = [field.name for field in fields(cls)[1:]]
        return cls(parts[0].family, *(np.concatenate([getattr(part, name) for part in parts]) for name in columns))

    @property
    def has_burnt(self) -> BoolArray:
        """Which fires have a day with burnt pixels."""
        return ~np.isnan(self.miss[:, -1])

    def at(self, place: int) -> dict[str, NDArray[Any]]:
        """One zone of the row on every fire."""
        columns = {"fire_id": self.fire_id, "miss": self.miss[:, place], "area_km2": self.area_km2[:, place]}
        return {**columns, "burnt_km2": self.burnt_km2}

    def tie_share(self, place: int) -> float:
        """The share of a zone's area that the next smaller one lacks: scores that tie, as far as levels can tell."""
        area = self.area_km2[:, place].sum()
        smaller = self.area_km2[:, place - 1].sum() if place else 0.0
        return float((area - smaller) / area) if area else 0.0


def measure_zones(
    maps: PredictedMaps, method: str, family: ZoneFamily, recalibration: Recalibration = NONE
) -> FireZones:
    """All zones of a family on a method's maps.

    `recalibration` is applied to the probability first. A guarantee needs one that the calibration fires had no part
    in: `none` or `prior`. Thresholds are the same zones under any.
    """
    names, fire_of = number_fires(maps)
    levels = family.levels
    miss, area = np.zeros((2, len(names), levels.size))
    burnt_days, burnt = np.zeros((2, len(names)))
    for images in maps.blocks():
        fire, prob, unc = maps.fire(images), recalibration.apply(maps.prob(method, images)), maps.unc(method, images)
        for k, owner in enumerate(fire_of[images]):
            size = maps.shape[1:] if maps.size is None else maps.size[images][k]
            here = (slice(size[0]), slice(size[1]))
            counts = ZoneCounts.of(family.score(prob[k][here], unc[k][here]), fire[k][here], levels)
            area[owner] += counts.inside
            burnt[owner] += counts.burnt[-1]
            if counts.burnt[-1]:
                miss[owner] += counts.miss
                burnt_days[owner] += 1
    days = np.bincount(fire_of, minlength=len(names))
    with np.errstate(invalid="ignore"):
        miss /= burnt_days[:, None]
    group = np.full(len(names), str(maps.year))
    return FireZones(family, names, miss, area * (_PIXEL_KM2 / days[:, None]), burnt * (_PIXEL_KM2 / days), group)


Measure = Callable[[PredictedMaps, str, ZoneFamily, Recalibration], FireZones]
"""`measure_zones`, or that with a memory."""


def measure_once() -> Measure:
    """`measure_zones` that reads no maps twice for the same: in cross-fitting each year calibrates all the others."""
    known: dict[tuple[Any, ...], FireZones] = {}

    def measure(maps: PredictedMaps, method: str, family: ZoneFamily, recalibration: Recalibration) -> FireZones:
        key = maps.year, maps.source, method, family, recalibration
        if key not in known:
            known[key] = measure_zones(maps, method, family, recalibration)
        return known[key]

    return measure


def fit_family(
    maps: Sequence[PredictedMaps],
    method: str,
    name: FamilyName,
    recalibration: Recalibration = NONE,
    miss: float = 0.1,
    measure_maps: Measure = measure_zones,
) -> FireZones:
    """A family on the fires of some files that calibrate it: for widened zones, those with no part in choosing κ.

    Each κ is judged by its smallest zone that misses at most `miss` of some fires set aside for it; the smallest κ is
    taken whose area is within one standard error over those fires of the best. With fewer than four fires with burnt
    pixels none can be set aside, and κ is 1.
    """
    if not maps:
        raise InputError(f"no validation maps of {method} to calibrate zones on; predict its validation fires first")

    def measure(family: ZoneFamily) -> FireZones:
        return FireZones.join([measure_maps(some, method, family, recalibration) for some in maps])

    if name != "widened":
        return measure(ZoneFamily(name))
    middle = measure(ZoneFamily(name, 1.0))
    usable = np.flatnonzero(middle.has_burnt)
    if len(usable) < 4:
        return middle
    design = np.random.default_rng(0).permutation(usable)[: max(2, round(_DESIGN_SHARE * len(usable)))]
    candidates = [middle if kappa == 1 else measure(ZoneFamily(name, kappa)) for kappa in KAPPAS]
    areas = np.stack([c.area_km2[design, zone_as_if(c.miss[design], miss, np.inf)] for c in candidates])
    lost = areas - areas[np.argmin(areas.mean(axis=1))]
    good = lost.mean(axis=1) <= lost.std(axis=1, ddof=1) / np.sqrt(len(design))
    return candidates[int(np.argmax(good))].take(np.setdiff1d(np.arange(len(middle.fire_id)), design))


def fit_rules(fires: FireZones, misses: Sequence[float] = MISSES, group: Sequence[str] | None = None) -> list[ZoneRule]:
    """The smallest zone for each miss; one that so few fires cannot guarantee is refused with a sentence.

    `group` as in `control_risk`: fires' groups in cross-fitting. Without it, fires of several groups, each under a
    model of its own, calibrate as if the models were alike, and `cross_bound` says what holds whatever they are.
    """
    rules = []
    several = group is None and len(np.unique(fires.group[fires.has_burnt])) > 1
    mean_area = fires.area_km2.mean(axis=0)
    for miss in misses:
        found = control_risk(fires.miss, miss, group)
        later = min(zone_as_if(fires.miss, miss, 2 / found.reserved), found.place)
        rules.append(
            ZoneRule(
                fires.family,
                level=float(fires.family.levels[found.place]),
                miss=miss,
                bound=found.bound,
                n_fires=found.n_fires,
                reserved=found.reserved,
                area_km2=float(mean_area[found.place]),
                area_2n_km2=float(mean_area[later]),
                cross_bound=cross_bound(fires.miss, found.place, fires.group) if several else None,
            )
        )
    return rules

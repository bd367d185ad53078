"""A predicted map as one can act on it: calibrated probability, its contours, and zones with their guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.regions import PIXEL_METRES
from fcer.core.zones import FamilyName, ZoneRule, draw_zone
from fcer.errors import InputError
from fcer.models.calibration_files import Adaptation, Calibration

__all__ = [
    "CONTOURS",
    "CalibratedMap",
    "GuaranteedZone",
    "calibrate_map",
    "calibrated_maps",
    "contours",
    "guarantee",
    "promises",
]

CONTOURS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Probabilities that contours are drawn at."""


@dataclass(frozen=True)
class GuaranteedZone:
    """A zone on one map."""

    rule: ZoneRule
    mask: BoolArray
    calibrated_level: float | None
    """Of a threshold: the calibrated probability that the zone's pixels have at least."""
    area_km2: float
    tie_share: float
    """The share of the zone whose score is the lowest in it: with a little less, all of it would go."""
    words: str

    @property
    def properties(self) -> dict[str, Any]:
        """What a map, a tag or a polygon says of the zone, in numbers and words."""
        return {
            "expected_miss_at_most": self.rule.miss,
            "family": self.rule.family.name,
            "level": self.rule.level if np.isfinite(self.rule.level) else "everywhere",
            **({} if self.calibrated_level is None else {"calibrated_level": round(self.calibrated_level, 6)}),
            "calibration_fires": self.rule.n_fires,
            "zone_km2": round(self.area_km2, 4),
            "tie_share": round(self.tie_share, 4),
            "guarantee": self.words,
        }


@dataclass(frozen=True)
class CalibratedMap:
    """Maps (H, W) of one day; NaN, and in no zone, where nothing is known."""

    probability: NDArray[np.float32]
    zones: tuple[GuaranteedZone, ...]
    """The smallest miss, and so the largest zone, first: each holds the next."""

    @property
    def innermost(self) -> NDArray[np.float32]:
        """The expected miss of the smallest zone that holds each pixel; 0 where none does."""
        miss = np.zeros(self.probability.shape, np.float32)
        for zone in self.zones:
            miss[zone.mask] = zone.rule.miss
        return miss


def calibrate_map(
    probability: FloatArray,
    uncertainty: FloatArray,
    calibration: Calibration,
    *,
    family: FamilyName = "threshold",
    misses: Sequence[float] | None = None,
    pixel_m: tuple[float, float] = (PIXEL_METRES, PIXEL_METRES),
) -> CalibratedMap:
    """A student's map (H, W) under its calibration.

    Parameters
    ----------
    probability, uncertainty
        As the student gives them.
    calibration
        Its own, from `load_calibration`.
    family
        Which zones are drawn; to be settled before maps are looked at.
    misses
        For which expected misses; None: all that are calibrated.
    pixel_m
        Height and width of a pixel on the ground.
    """
    rules = {rule.miss: rule for rule in calibration.rules_of(family)}
    wanted = sorted(rules if misses is None else misses)
    unknown = [miss for miss in wanted if miss not in rules]
    if unknown:
        known = ", ".join(f"{miss:g}" for miss in rules) or "none"
        raise InputError(
            f"no {family} zone is calibrated for a miss of {unknown[0]:g} (there is: {known}); "
            f"run `fcer calibrate --miss {unknown[0]:g}`"
        )
    before_zones = calibration.zone_prior.apply(probability)
    zones = []
    for miss in wanted:
        rule = rules[miss]
        zone = draw_zone(rule.family.score(before_zones, uncertainty, pixel_m), rule.level)
        area = np.count_nonzero(zone.mask) * pixel_m[0] * pixel_m[1] / 1e6
        words = guarantee(rule, calibration.chose_epoch, calibration.adapted)
        zones.append(GuaranteedZone(rule, zone.mask, _calibrated_level(rule, calibration), area, zone.tie_share, words))
    return CalibratedMap(calibration.recalibration.apply(probability).astype(np.float32), tuple(zones))


def calibrated_maps(
    probability: FloatArray, uncertainty: FloatArray, calibration: Calibration
) -> dict[str, NDArray[np.float32]]:
    """Of a student's maps (samples, rows, columns): the calibrated probability, and the innermost zone's miss."""
    each = [calibrate_map(p, u, calibration) for p, u in zip(probability, uncertainty, strict=True)]
    zones = np.stack([one.innermost for one in each])
    return {"calibrated_probability": np.stack([one.probability for one in each]), "zone": zones}


def contours(probability: FloatArray) -> dict[float, BoolArray]:
    """Where the calibrated probability is at least each level, the largest area first."""
    return {level: np.asarray(probability >= level) for level in CONTOURS}


def guarantee(rule: ZoneRule, chose_epoch: bool = False, adapted: Adaptation | None = None) -> str:
    """What a zone promises, and on which assumption.

    >>> from fcer.core.zones import ZoneFamily
    >>> guarantee(ZoneRule(ZoneFamily("threshold"), 0.02, 0.1, 0.095, 23, 1, 40.0, 31.0)).split(" (")[0]
    "On average over fires, at most 10 % of the next day's fire lies outside this zone"
    """
    if adapted:
        return (
            f"Over many days, on average about {100 * rule.miss:.3g} % of the next day's fire lies outside this zone, "
            f"which was adapted to {adapted.days} verified days from {adapted.first} to {adapted.last}. This is a mean "
            "over time, whatever fires come, and no promise for the next one."
        )
    by, alike, of_groups = "", "", f" cross-fitted in groups of up to {rule.reserved}" if rule.reserved > 1 else ""
    if rule.cross_bound is not None:
        by = ", each under a model that was not trained on it"
        whatever = f"{100 * rule.cross_bound:.3g} % outside all their zones together"
        alike = f" and this model like theirs (whatever the models: {whatever})"
    words = (
        f"On average over fires, at most {100 * rule.miss:.3g} % of the next day's fire lies outside this zone (bound "
        f"{100 * rule.bound:.3g} %, from {rule.n_fires} calibration fires{of_groups}{by}, one loss a fire). "
        f"This holds if the fire is of the same kind as those{alike}, not for every single fire."
    )
    if np.isneginf(rule.level):
        words += " With so few fires only the whole image keeps that promise."
    if chose_epoch:
        words += " The same fires chose the model's epoch, which flatters it a little."
    return words


def promises(calibration: Calibration) -> list[dict[str, Any]]:
    """What the zones of the calibration promise on any map, in numbers and words; the smallest miss first."""
    return [
        {
            "expected_miss_at_most": rule.miss,
            "family": "threshold",
            "calibration_fires": rule.n_fires,
            "guarantee": guarantee(rule, calibration.chose_epoch, calibration.adapted),
        }
        for rule in calibration.rules_of("threshold")
    ]


def _calibrated_level(rule: ZoneRule, calibration: Calibration) -> float | None:
    if rule.family.name != "threshold":
        return None
    back = replace(calibration.zone_prior, weight=1 / calibration.zone_prior.weight)
    return float(calibration.recalibration.apply(back.apply(max(rule.level, 0.0))))

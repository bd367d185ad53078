"""Zones around a predicted fire: families of nested masks, each {score ≥ level} of one score map.

    threshold   score is the fire probability
    margin      score is minus the distance in metres to where the probability is above 0.5
    widened     score is probability + κ · uncertainty

The levels of a family are a fixed grid, settled before any fire is seen, from the smallest zone to the whole image.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.special import expit

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.regions import PIXEL_METRES
from fcer.core.segmentation import FIRE_THRESHOLD

__all__ = ["FAMILIES", "KAPPAS", "FamilyName", "Zone", "ZoneCounts", "ZoneFamily", "ZoneRule", "draw_zone"]

FamilyName = Literal["threshold", "margin", "widened"]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)

KAPPAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""What κ is chosen from."""

_PROBABILITIES = expit(np.linspace(16, -16, 1024))
# quarters of a pixel up to 6 km, then pixels up to 48 km
_MARGINS_M = np.concatenate([np.arange(64) / 4, np.arange(16, 129)]) * PIXEL_METRES


@dataclass(frozen=True)
class ZoneFamily:
    """One family of nested zones."""

    name: FamilyName
    kappa: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in FAMILIES:
            raise ValueError(f"a family of zones is one of {', '.join(FAMILIES)}, not {self.name!r}")
        if not (math.isfinite(self.kappa) and self.kappa >= 0) or (self.kappa and self.name != "widened"):
            raise ValueError(f"kappa is 0 or more, and 0 but for widened zones, not {self.kappa} for {self.name}")

    @property
    def levels(self) -> FloatArray:
        """From the smallest zone to the largest, falling; the last, minus infinity, is the whole image."""
        levels = -_MARGINS_M if self.name == "margin" else _PROBABILITIES * (1 + self.kappa)
        return np.append(levels, -np.inf)

    def score(
        self, prob: ArrayLike, unc: ArrayLike, pixel_m: tuple[float, float] = (PIXEL_METRES, PIXEL_METRES)
    ) -> FloatArray:
        """The score map of one image (H, W), in double precision; NaN where the probability is.

        `pixel_m` is a pixel's height and width. Where no probability is above 0.5, margins are measured from the most
        probable pixels: a fire that the model hardly sees has a zone, too.
        """
        p = np.asarray(prob, dtype=np.float64)
        if self.name == "threshold":
            return p
        if self.name == "widened":
            return np.asarray(p + self.kappa * np.asarray(unc, dtype=np.float64))
        known = ~np.isnan(p)
        if not known.any():
            return p
        inner = p > min(FIRE_THRESHOLD, np.nextafter(p[known].max(), -1))
        return np.where(known, -ndimage.distance_transform_edt(~inner, sampling=pixel_m), np.nan)


class ZoneCounts(NamedTuple):
    """Pixels of one image inside each zone of a family, and how many of them burnt."""

    inside: IntArray
    burnt: IntArray

    @classmethod
    def of(cls, score: FloatArray, fire: BoolArray, levels: FloatArray) -> "ZoneCounts":
        """Exact in ties: a pixel whose score is a level is inside that level's zone."""
        # sorting pixels and looking levels up is far faster than looking pixels up among the levels
        return cls(
            *(np.searchsorted(np.sort(-some, axis=None), -levels, side="right") for some in (score, score[fire]))
        )

    @property
    def miss(self) -> FloatArray:
        """The share of burnt pixels outside each zone; NaN where nothing burnt."""
        total = self.burnt[-1]
        return (total - self.burnt) / total if total else np.full(self.burnt.shape, np.nan)


class Zone(NamedTuple):
    """A zone on a map."""

    mask: BoolArray
    tie_share: float
    """The share of the zone's pixels that have its lowest score: they are in it together or not at all."""


def draw_zone(score: FloatArray, level: float) -> Zone:
    """The zone {score ≥ level}; pixels of which nothing is known (NaN) are not in it.

    >>> zone = draw_zone(np.array([[0.9, 0.3, 0.3, 0.1]]), 0.2)
    >>> zone.mask.astype(int).tolist(), round(zone.tie_share, 2)
    ([[1, 1, 1, 0]], 0.67)
    """
    mask = np.asarray(score >= level)
    inside = score[mask]
    return Zone(mask, float(np.mean(inside == inside.min())) if inside.size > 1 else 0.0)


@dataclass(frozen=True)
class ZoneRule:
    """How a zone is drawn, what miss it guarantees, and what stands behind that."""

    family: ZoneFamily
    level: float
    """The zone is where the score is at least this; minus infinity: everywhere."""
    miss: float
    """At most this share of tomorrow's fire is expected outside."""
    bound: float
    """What the calibration fires bound the expected miss by, at most `miss`."""
    n_fires: int
    reserved: int
    """As in `ControlledRisk`: 1, or the largest group's fires in cross-fitting."""
    area_km2: float
    """Of the zone, mean over the calibration fires."""
    area_2n_km2: float
    """The same, of the zone that twice as many fires like these would choose."""
    cross_bound: float | None = None
    """Where several models' fires calibrate: what bounds the expected miss of all their zones together, whatever the
    models. `bound` is then that of models which are alike."""

    def __post_init__(self) -> None:
        if not 0 < self.bound <= self.miss * (1 + 1e-9) < 1:
            raise ValueError(f"a bound of {self.bound} does not guarantee a miss of {self.miss}")
        if math.isnan(self.level) or self.level == math.inf or self.n_fires < 2 or self.reserved < 1:
            raise ValueError(f"level {self.level} from {self.n_fires} fires, {self.reserved} reserved, is no zone")
        if not 0 <= self.area_2n_km2 <= self.area_km2 * (1 + 1e-9) < math.inf:
            raise ValueError(f"{self.area_km2} km2, {self.area_2n_km2} km2 with more fires, are no areas")
        if self.cross_bound is not None and not self.bound <= self.cross_bound * (1 + 1e-9) < 1 + 1e-6:
            raise ValueError(f"a bound of {self.cross_bound} whatever the models, below {self.bound}, is none")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity: null stands for the level of the whole image."""
        values = {**asdict(self), "level": None if math.isinf(self.level) else self.level}
        if self.cross_bound is None:
            del values["cross_bound"]
        return values

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "ZoneRule":
        """What `to_dict` gave; a ValueError says what is wrong with anything else."""
        try:
            values, family = dict(stored), dict(stored["family"])
            level = -math.inf if values.pop("level") is None else stored["level"]
            del values["family"]
            numbers = (level, family["kappa"], *values.values())
            if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
                raise TypeError("a value is not a number")
            if not all(isinstance(values[name], int) for name in ("n_fires", "reserved")):
                raise TypeError("fires are whole")
            return cls(ZoneFamily(**family), level=float(level), **values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a zone's rule cannot be read: {error}") from None

"""Probabilities made to mean what they say near the fire, by maps of one number that never turn the order around.

`prior` undoes the weight that fire pixels had in the loss; `platt` scales and shifts the logit; `isotonic` follows the
fire rate as it rises with probability; `none` leaves probabilities alone; others may bring a `Calibrator` of their own.
`core/recalibration_fits.py` fits them and chooses among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from fcer.core.arrays import FloatArray

__all__ = ["KINDS", "NONE", "Recalibration"]

KINDS = ("none", "prior", "platt", "isotonic")
"""Ours, the simpler first."""


@dataclass(frozen=True)
class Recalibration:
    """A rising map from a model's probability to a calibrated one.

    `prior` and `platt` keep every rank as far as double precision can tell probabilities apart; `isotonic`, which runs
    straight between the middles of its steps rather than along them, ties nearly none.

    >>> Recalibration("prior", weight=4.0).apply([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.2, 1.0]
    """

    kind: str
    """One of `KINDS`, or the name of the calibrator that fitted it."""
    weight: float = 1.0
    """`prior`: what fire pixels weighed in the loss."""
    scale: float = 1.0
    shift: float = 0.0
    """`platt`: of the logit."""
    knots: tuple[tuple[float, float], ...] = ()
    """`isotonic` and calibrators that others bring: probability before and after, both rising."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise ValueError(f"a recalibration is {', '.join(KINDS)} or a calibrator's name, not {self.kind!r}")
        numbers = (self.weight, self.scale, self.shift)
        if not np.isfinite(numbers).all() or self.weight <= 0 or self.scale <= 0:
            raise ValueError(f"weight and scale are above 0 and finite, not weight, scale, shift = {numbers}")
        knots = np.array(self.knots, dtype=np.float64).reshape(-1, 2)
        inside = np.isfinite(knots).all() and (knots >= 0).all() and (knots <= 1).all()
        if self._has_knots != bool(len(knots)) or not inside or (np.diff(knots, axis=0) < 0).any():
            raise ValueError("knots, which none, prior and platt do without, rise from 0 to 1 in both coordinates")

    @property
    def _has_knots(self) -> bool:
        return self.kind not in ("none", "prior", "platt")

    def apply(self, prob: ArrayLike) -> FloatArray:
        """Calibrated probabilities in double precision; NaN stays NaN."""
        p = np.asarray(prob, dtype=np.float64)
        if self.kind == "prior":
            return np.asarray(p / (p + self.weight * (1 - p)))
        if self.kind == "platt":
            with np.errstate(divide="ignore"):  # certainty stays certainty
                return np.asarray(expit(self.scale * logit(p) + self.shift))
        return np.interp(p, *np.array(self.knots).T) if self._has_knots else p.copy()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: only what the kind needs."""
        own: dict[str, dict[str, Any]] = {
            "none": {},
            "prior": {"weight": self.weight},
            "platt": {"scale": self.scale, "shift": self.shift},
        }
        return {"kind": self.kind, **own.get(self.kind, {"knots": [list(knot) for knot in self.knots]})}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Recalibration":
        """What `to_dict` gave; a ValueError says what is wrong with anything else."""
        values = dict(stored)
        kind = values.pop("kind", None)
        expected = {"none": set(), "prior": {"weight"}, "platt": {"scale", "shift"}}
        if not isinstance(kind, str) or values.keys() != expected.get(kind, {"knots"}):
            raise ValueError(f"a recalibration {kind!r} of {sorted(values)} is none")
        try:
            if kind not in expected:
                return cls(kind, knots=tuple((_plain(x), _plain(y)) for x, y in values["knots"]))
            numbers: dict[str, Any] = {name: _plain(value) for name, value in values.items()}
            return cls(kind, **numbers)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a recalibration {kind!r} cannot be read: {error}") from None


NONE = Recalibration("none")


def _plain(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)

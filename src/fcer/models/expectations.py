"""What a student's validation fires say its forecasts should score: the promise that verification holds them to."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Expectations"]


@dataclass(frozen=True)
class Expectations:
    """Plain numbers; they travel with the calibration, and with every forecast."""

    scores: Mapping[str, tuple[float, ...]]
    """Of each score (`lift`, `nll_skill`, `auroc`), those of validation fires, ascending."""
    ranges: Mapping[str, tuple[float, float]]
    """Of each input channel, between which standardised means its days lay."""
    lacking: float
    """The share of fires whose input may lack a channel, at most."""
    threshold: float
    """Probability above which a pixel counted as fire."""
    fires: int

    def __post_init__(self) -> None:
        numbers = [one for several in (*self.scores.values(), *self.ranges.values()) for one in several]
        shares = (self.lacking, self.threshold)
        if not all(math.isfinite(number) for number in numbers) or not all(0 <= share <= 1 for share in shares):
            raise ValueError("what is expected of forecasts is no number, or no share")
        if any(len(pair) != 2 or pair[0] > pair[1] for pair in self.ranges.values()) or self.fires < 1:
            raise ValueError("a range goes from its lower to its upper end")
        if any(not several or list(several) != sorted(several) for several in self.scores.values()):
            raise ValueError("scores of validation fires ascend")

    @property
    def key(self) -> str:
        """Stands for all of it."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "scores": {name: list(several) for name, several in self.scores.items()},
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "lacking": self.lacking,
            "threshold": self.threshold,
            "fires": self.fires,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Expectations | None":
        """What `to_dict` gave; a ValueError says what is wrong with anything else.

        None where a version before told the ends of intervals: they promise too little to be tested.
        """
        if "low" in stored:
            return None
        try:
            scores = {str(name): tuple(map(float, several)) for name, several in stored["scores"].items()}
            ranges = {str(name): (float(a), float(b)) for name, (a, b) in stored["ranges"].items()}
            shares = {name: float(stored[name]) for name in ("lacking", "threshold")}
            return cls(scores, ranges, **shares, fires=int(stored["fires"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"what is expected of forecasts cannot be read: {error}") from None

    @classmethod
    def from_text(cls, text: str) -> "Expectations | None":
        """Of JSON."""
        try:
            return cls.from_dict(json.loads(text))
        except RecursionError:
            raise ValueError("what is expected of forecasts is nested too deeply") from None

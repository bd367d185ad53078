"""What a student's validation fires say its forecasts should score: the promise that verification holds them to."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Expectations"]


@dataclass(frozen=True)
class Expectations:
    """Plain numbers; they travel with the calibration, and with every forecast."""

    low: Mapping[str, float]
    """Of each score (`ap`, `nll_skill`, `auroc`), the lower end of the 95 % interval of its mean over fires."""
    mean: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    """Of each input channel, between which standardised means its days lay."""
    beyond: float
    """The share of fires that may lie outside of such a range, at most."""
    lacking: float
    """The share of fires whose input may lack a channel, at most."""
    threshold: float
    """Probability above which a pixel counted as fire."""
    fires: int

    def __post_init__(self) -> None:
        numbers = [*self.low.values(), *self.mean.values(), *(end for pair in self.ranges.values() for end in pair)]
        shares = (self.beyond, self.lacking, self.threshold)
        if not all(math.isfinite(number) for number in numbers) or not all(0 <= share <= 1 for share in shares):
            raise ValueError("what is expected of forecasts is no number, or no share")
        if any(len(pair) != 2 or pair[0] > pair[1] for pair in self.ranges.values()) or self.fires < 1:
            raise ValueError("a range goes from its lower to its upper end")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "low": dict(self.low),
            "mean": dict(self.mean),
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "beyond": self.beyond,
            "lacking": self.lacking,
            "threshold": self.threshold,
            "fires": self.fires,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Expectations":
        """What `to_dict` gave; a ValueError says what is wrong with anything else."""
        try:
            low, mean = ({str(k): float(v) for k, v in stored[name].items()} for name in ("low", "mean"))
            ranges = {str(name): (float(a), float(b)) for name, (a, b) in stored["ranges"].items()}
            shares = {name: float(stored[name]) for name in ("beyond", "lacking", "threshold")}
            return cls(low, mean, ranges, **shares, fires=int(stored["fires"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"what is expected of forecasts cannot be read: {error}") from None

    @classmethod
    def from_text(cls, text: str) -> "Expectations":
        """Of JSON."""
        try:
            return cls.from_dict(json.loads(text))
        except RecursionError:
            raise ValueError("what is expected of forecasts is nested too deeply") from None

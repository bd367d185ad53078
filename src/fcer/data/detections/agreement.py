"""How well two satellites agree on where a fire burns: how noisy labels made of their detections are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter

from fcer.data.detections.table import SATELLITES

__all__ = ["Agreement", "agreement_of", "pooled"]

Masks = NDArray[np.bool_]
"""(days, height, width)"""


@dataclass(frozen=True)
class Agreement:
    """Fire pixels of each satellite, and how many of them lie within one pixel of the other's on the same day."""

    satellites: tuple[str, str]
    pixels: tuple[int, int]
    near: tuple[int, int]

    @property
    def shares(self) -> tuple[float, float]:
        """Of the first satellite's pixels near the second's, and the other way round; NaN where there are none."""
        first, second = (n / of if of else float("nan") for n, of in zip(self.near, self.pixels, strict=True))
        return first, second


def agreement_of(pair: tuple[int, int], first: Masks, second: Masks) -> Agreement:
    """Of two satellites over the days of one fire."""
    near_first, near_second = (maximum_filter(mask, (1, 3, 3)) for mask in (first, second))
    return Agreement(
        satellites=(SATELLITES[pair[0]], SATELLITES[pair[1]]),
        pixels=(int(first.sum()), int(second.sum())),
        near=(int((first & near_second).sum()), int((second & near_first).sum())),
    )


def pooled(parts: Sequence[Agreement]) -> Agreement | None:
    """Of all fires together; None where no fire was seen by two satellites."""
    if not parts:
        return None
    pixels, near = (np.sum([getattr(part, name) for part in parts], 0).tolist() for name in ("pixels", "near"))
    return Agreement(parts[0].satellites, (pixels[0], pixels[1]), (near[0], near[1]))

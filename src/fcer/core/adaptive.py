"""Zones that follow what burns: adaptive conformal inference, on a zone's level itself.

Day by day the level moves against the day's surprise: down, so that the zone grows, by `rate` times what was missed
beyond α, up where less was missed. Whatever the days bring, drift and adversaries included, the mean miss over T days
is then within (range + rate) / (rate · T) of α, where the range of logits, 32, takes a zone from nothing to the whole
image (Gibbs and Candès 2021; Angelopoulos et al. 2023). It is a promise on the long run, not on the next day.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, logit

__all__ = ["FARTHEST", "RATE", "adapted_levels"]

FARTHEST = 16.0
"""Logits of the levels that lie between nothing and the whole image, as in `ZoneFamily`."""
RATE = 1.0
"""Logits that a day on which everything was missed, beyond α, moves the level."""


def adapted_levels(
    level: float, miss: float, days: Sequence[Callable[[float], float]], rate: float = RATE
) -> list[float]:
    """The level that stands after each day, from the one before the first.

    Parameters
    ----------
    level
        A probability; minus infinity: the whole image.
    miss
        The mean miss that is wanted, α.
    days
        Each says what a zone of a level misses on that day; NaN where nothing burnt, and the level stays.
    """
    position = -FARTHEST if np.isneginf(level) else float(np.clip(logit(level), -FARTHEST, FARTHEST))
    levels = []
    for missed in days:
        found = missed(_level(position))
        if not np.isnan(found):
            position -= rate * (found - miss)
        levels.append(_level(position))
    return levels


def _level(position: float) -> float:
    """Beyond the farthest level lies the whole image on one side, nothing on the other."""
    if position < -FARTHEST:
        return -np.inf
    return float(expit(position)) if position <= FARTHEST else np.inf

"""Which days say something: the last one may not be over, and a day on which nobody looked is not free of fire."""

from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from fcer.data.detections.table import Detections

__all__ = ["date_of", "day_number", "incomplete_day", "unseen_days"]

_EPOCH = date(1970, 1, 1)
_FULL = 10
"""Detections of a full day: with fewer, chance alone leaves a day without."""
_HARDLY = 0.05
"""Share of the full days around it below which a day was hardly seen: cloud, smoke, or an overpass that is lacking."""


def date_of(day: int) -> date:
    """A day since 1970 as a date."""
    return _EPOCH + timedelta(days=int(day))


def day_number(when: date) -> int:
    """A date as a day since 1970."""
    return (when - _EPOCH).days


def incomplete_day(detections: Detections, days: NDArray[np.int32]) -> int | None:
    """The last day, where it is of near-real-time files: they were downloaded during it. None where it is whole."""
    last = days.max()
    return int(last) if detections.provisional[days == last].any() else None


def unseen_days(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Days with nearly no detection between full days.

    A day is unseen where it has fewer than a twentieth of the detections of the fuller of the two days before it,
    and of the fuller of the two days after it; those must be full days, of ten detections or more.

    >>> unseen_days(np.array([300, 280, 3, 310, 200, 0, 0])).tolist()
    [False, False, True, False, False, False, False]
    """
    framed = np.pad(counts, 2)
    before = np.maximum(framed[:-4], framed[1:-3])
    after = np.maximum(framed[4:], framed[3:-1])
    around = np.minimum(before, after)
    return (around >= _FULL) & (counts < _HARDLY * around)

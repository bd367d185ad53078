"""Static sources: steel mills, refineries, flares and volcanoes light the same few pixels day after day.

A wildfire burns a place for some days and moves on, with many places alight around. So a cell of 1 km is static
where it was seen on many days while hardly another cell within 3 km was.
"""

import numpy as np
from numpy.typing import NDArray

from fcer.data.detections.table import Detections

__all__ = ["cells_of", "is_static", "static_sources"]

KM_A_DEGREE = 111.2
_REACH = 3
"""Cells to each side that count as around."""
_LEAST_DAYS = 5
"""Below these, chance and a slow fire look alike; so nothing is called static in files of fewer days."""
_LEAST_SHARE = 0.15
"""Of the days in the files: no wildfire burns one cell on more than nine days in nine weeks, or 55 in a year."""
_FEW_CELLS = 4
"""Cells alight on an average day within reach of a static one, itself included."""
_LONGITUDES = 1 << 20


def cells_of(detections: Detections) -> NDArray[np.int64]:
    """The cell of about 1 km that each detection lies in, as one number: row * 2^20 + column."""
    rows = np.rint(detections.latitude * KM_A_DEGREE)
    columns = np.rint(detections.longitude * np.cos(np.radians(rows / KM_A_DEGREE)) * KM_A_DEGREE)
    return rows.astype(np.int64) * _LONGITUDES + columns.astype(np.int64)


def static_sources(detections: Detections, days: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which detections are of static sources: those in a static cell or beside one, as places are off by a pixel."""
    if not len(detections):
        return np.zeros(0, bool)
    cell = cells_of(detections)
    cells, place = np.unique(cell, return_inverse=True)
    seen = np.unique(place * np.int64(1 << 20) + (days - days.min())) >> 20  # a cell once for each of its days
    days_seen = np.bincount(seen, minlength=len(cells))
    covered = len(np.unique(days))
    lasting = np.flatnonzero(days_seen >= max(_LEAST_DAYS, _LEAST_SHARE * covered))
    around = np.zeros(len(lasting), np.int64)
    for offset in _offsets(_REACH):
        around += _values(cells, days_seen, cells[lasting] + offset)
    static = cells[lasting[around <= _FEW_CELLS * days_seen[lasting]]]
    near = np.unique(np.concatenate([static + offset for offset in _offsets(1)])) if len(static) else static
    return np.isin(cell, near)


def _offsets(reach: int) -> list[int]:
    steps = range(-reach, reach + 1)
    return [down * _LONGITUDES + right for down in steps for right in steps]


def _values(cells: NDArray[np.int64], values: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values of wanted cells, 0 where there is no such cell."""
    at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(cells[at] == wanted, values[at], 0)


_FEW_CELLS_OF_EVENT = 30
_MOST = 2 / 3


def is_static(detections: Detections, days: NDArray[np.int32]) -> bool:
    """Whether an event is a works with several sources: most of it on the same few cells, on most of its days."""
    cells, place = np.unique(cells_of(detections), return_inverse=True)
    n_days = len(np.unique(days))
    if len(cells) > _FEW_CELLS_OF_EVENT or n_days < _LEAST_DAYS:
        return False
    days_seen = np.bincount(np.unique(place * np.int64(1 << 20) + (days - days.min())) >> 20)
    return bool((days_seen[place] >= _MOST * n_days).mean() >= _MOST)

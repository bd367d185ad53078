"""Fire events: detections that are near one another in space and time, by DBSCAN.

Not single detections are clustered but cells of 1 km on a day, each weighing as many as it holds: a season's two
million detections are a few hundred thousand of those. Distances are straight through a globe, in km, which over a
few km is the distance on the ground anywhere on earth.
"""

import numpy as np
from numpy.typing import NDArray

from fcer.data.detections.static import cells_of
from fcer.data.detections.table import Detections

__all__ = ["EARTH_KM", "find_events"]

EARTH_KM = 6371.0
_DENSE = 5
"""Detections within reach of a place that can hold an event together: single ones do not chain two fires."""
_AT_ONCE = 50_000
"""Cells that are clustered together at least, to bound the memory that neighbours take."""


def find_events(
    detections: Detections, days: NDArray[np.int32], *, near_km: float, near_days: float
) -> NDArray[np.int64]:
    """The event of each detection, numbered from 0; -1 where it belongs to none.

    Two places belong together where their distance in `near_km` and their time in `near_days`, taken as the sides
    of a right angle, span at most 1: the same place up to `near_days` later, and up to `near_km` on the same day.
    """
    from sklearn.cluster import DBSCAN  # half a second that only this needs

    if not len(detections):
        return np.full(0, -1)
    when = days - days.min()
    _, place, weight = np.unique(cells_of(detections) * (1 << 20) + when, return_inverse=True, return_counts=True)
    points = np.zeros((len(weight), 4))
    for axis, values in enumerate((*(EARTH_KM / near_km * detections.unit_vectors().T), when / near_days)):
        points[:, axis] = np.bincount(place, values) / weight
    labels = np.full(len(points), -1)
    found = 0
    for part in _apart(points):
        some = DBSCAN(eps=1, min_samples=_DENSE, algorithm="kd_tree").fit(points[part], sample_weight=weight[part])
        labels[part] = np.where(some.labels_ >= 0, some.labels_ + found, -1)
        found += some.labels_.max() + 1
    return labels[place]


def _apart(points: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """The points in parts that cannot belong together: more than 1 apart in time, which is enough to cut a year."""
    order = np.argsort(points[:, 3], kind="stable")
    cuts = np.flatnonzero(np.diff(points[order, 3]) > 1) + 1
    parts: list[NDArray[np.int64]] = []
    start = 0
    for cut in [*cuts, len(order)]:
        if cut - start >= _AT_ONCE or cut == len(order):
            parts.append(order[start:cut])
            start = cut
    return parts

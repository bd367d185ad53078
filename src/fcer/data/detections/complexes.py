"""Events that burn in one another's midst are one fire: its fronts may be farther apart than its detections are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.data.detections.events import EARTH_KM
from fcer.data.detections.table import Detections

__all__ = ["join_overlapping"]

_LARGEST_KM = 150.0
"""Beyond that, fires that merely stand close, as in a savanna's season, would become one without end."""


@dataclass(frozen=True)
class _Box:
    """Where and when an event burnt; degrees, around a middle that may lie at the date line."""

    middle: float
    west: float
    east: float
    south: float
    north: float
    first: int
    last: int
    members: NDArray[np.int64]

    def touches(self, other: "_Box") -> bool:
        """Whether both burn in the same place on the same days."""
        shift = _turned(other.middle - self.middle)
        return (
            self.first <= other.last
            and other.first <= self.last
            and self.south <= other.north
            and other.south <= self.north
            and self.west <= shift + other.east
            and shift + other.west <= self.east
        )

    def joined(self, other: "_Box") -> "_Box":
        """The box of both."""
        shift = _turned(other.middle - self.middle)
        return _Box(
            middle=self.middle,
            west=min(self.west, shift + other.west),
            east=max(self.east, shift + other.east),
            south=min(self.south, other.south),
            north=max(self.north, other.north),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            members=np.concatenate([self.members, other.members]),
        )

    def size_km(self) -> float:
        """Of its longer side."""
        shrink = np.cos(np.radians((self.south + self.north) / 2))
        return EARTH_KM * float(np.radians(max(self.north - self.south, (self.east - self.west) * shrink)))


def join_overlapping(
    detections: Detections, days: NDArray[np.int32], events: list[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """Join events whose boxes overlap on common days, the largest first, until none do."""
    waiting = [_box(detections, days, members) for members in sorted(events, key=len, reverse=True)]
    done: list[_Box] = []
    while waiting:
        box = waiting.pop(0)
        near = next((k for k, other in enumerate(waiting) if box.touches(other) and _fits(box, other)), None)
        if near is None:
            done.append(box)
        else:
            waiting.insert(0, box.joined(waiting.pop(near)))
    return [np.sort(box.members) for box in done]


def _box(detections: Detections, days: NDArray[np.int32], members: NDArray[np.int64]) -> _Box:
    lng, lat, when = detections.longitude[members], detections.latitude[members], days[members]
    middle = float(lng[0])
    offset = _turned(lng - middle)
    return _Box(
        middle=middle,
        west=float(offset.min()),
        east=float(offset.max()),
        south=float(lat.min()),
        north=float(lat.max()),
        first=int(when.min()),
        last=int(when.max()),
        members=members,
    )


def _fits(box: _Box, other: _Box) -> bool:
    return box.joined(other).size_km() <= _LARGEST_KM


def _turned(degrees: Any) -> Any:
    """To -180 to 180, across the date line."""
    return (degrees + 180) % 360 - 180

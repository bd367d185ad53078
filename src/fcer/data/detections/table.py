"""Detections as columns of numbers: 33 bytes each, however they were spelled in a file."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONFIDENCES", "MINUTES_A_DAY", "SATELLITES", "Detections", "joined"]

SATELLITES = ("Suomi NPP", "NOAA-20", "NOAA-21")
CONFIDENCES = ("low", "nominal", "high")
MINUTES_A_DAY = 1440


@dataclass(frozen=True, eq=False)
class Detections:
    """One entry for each detection in every column."""

    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    scan: NDArray[np.float32]
    """Width of the detecting pixel in km, across the satellite's track."""
    track: NDArray[np.float32]
    """Its height in km."""
    time: NDArray[np.int32]
    """Minutes since 1970, UTC."""
    satellite: NDArray[np.uint8]
    """Place in SATELLITES."""
    confidence: NDArray[np.uint8]
    """Place in CONFIDENCES."""
    kind: NDArray[np.uint8]
    """`type` of archives: 0 vegetation fire, 1 volcano, 2 other static source, 3 offshore; 0 where not said."""
    provisional: NDArray[np.bool_]
    """Near real time: its day may not be over."""

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, picked: NDArray[Any] | slice) -> "Detections":
        return Detections(*(getattr(self, field.name)[picked] for field in fields(self)))

    def days(self, count: str = "utc") -> NDArray[np.int32]:
        """Days since 1970 that detections belong to: by `utc`, or by `solar` time at their longitude."""
        if count == "solar":
            return np.floor((self.time + 4 * self.longitude) / MINUTES_A_DAY).astype(np.int32)
        return self.time // np.int32(MINUTES_A_DAY)

    def unit_vectors(self) -> NDArray[np.float64]:
        """(n, 3) places on a globe of radius 1: distances hold everywhere, at the date line and in the far north."""
        lat, lng = np.radians(self.latitude), np.radians(self.longitude)
        return np.stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)], 1)


def joined(parts: Sequence[Detections]) -> Detections:
    """Several tables as one."""
    names = [field.name for field in fields(Detections)]
    return Detections(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

"""One fire on disk, whatever its form: what it is, and how a window of it is read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.errors import DataError

__all__ = ["EVERYWHERE", "SYNTHETIC", "SYNTHETIC_MANIFEST", "Fire", "Place", "channel_runs"]

EVERYWHERE = slice(None)

SYNTHETIC = "synthetic"
"""Part of the name of every fire that never burnt: a name goes wherever a fire's maps and scores go."""

SYNTHETIC_MANIFEST = "synthetic.json"
"""In a folder of synthetic fires: what they were made by."""

_CRS = re.compile(r"EPSG:\d+|[A-Z][A-Z_]*\[.*", re.DOTALL | re.IGNORECASE)
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Place:
    """Where an image lies: its six-number transform, in a coordinate system of the earth where that is known."""

    crs: str | None
    """EPSG:n or WKT. Anything else might be the address of a file, which GDAL would open."""
    transform: tuple[float, ...]

    @classmethod
    def said(cls, crs: str | None, transform: Sequence[float]) -> "Place | None":
        """What a file says, as far as it can be used; None where it says nothing."""
        known = crs if crs is not None and _CRS.fullmatch(crs.strip()) else None
        a, b, _, d, e, _ = six = tuple(transform[:6]) if len(transform) in (6, 9) else _IDENTITY
        if not np.isfinite(six).all() or a * e == b * d or (known is None and six == _IDENTITY):
            return None
        return cls(known, six)


@dataclass(eq=False)
class Fire(ABC):
    """Consecutive days of one fire: (days, 23, height, width), opened and checked, not yet read.

    Subclasses read HDF5 files and folders of GeoTIFFs; both give the same numbers.
    """

    path: Path
    year: int
    name: str
    days: int
    height: int
    width: int
    dates: tuple[date, ...] | None
    """One for each day; None where the file does not say."""
    place: Place | None = field(default=None, kw_only=True)
    lnglat: tuple[float, float] | None = field(default=None, kw_only=True)

    @abstractmethod
    def read(
        self, days: slice, channels: Sequence[int], rows: slice = EVERYWHERE, columns: slice = EVERYWHERE
    ) -> NDArray[np.float32]:
        """(days, channels, rows, columns) of the raw values, and nothing else of the file."""

    @abstractmethod
    def files(self) -> list[Path]:
        """The files that hold this fire."""

    def measured_channels(self) -> set[int]:
        """The raw channels that have any value on the latest day: of detections the fire and its layers alone."""
        (latest,) = self.read(slice(self.days - 1, self.days), range(len(CHANNELS)))
        return {channel for channel, image in enumerate(latest) if not np.isnan(image).all()} | {ACTIVE_FIRE}

    @property
    def label(self) -> str:
        """The fire's name below the dataset's folder, for messages."""
        return f"{self.year}/{self.path.name}"

    def gaps(self) -> list[int]:
        """The days that do not follow the one before by exactly one day."""
        if self.dates is None:
            return []
        return [k + 1 for k, (a, b) in enumerate(pairwise(self.dates)) if (b - a).days != 1]

    def first_days(self, leading: int) -> list[int]:
        """The days at which a sample of `leading` days and its label on the next day can start."""
        gaps = self.gaps()
        starts = range(max(0, self.days - leading))
        return [s for s in starts if not any(s < gap <= s + leading for gap in gaps)]

    def __str__(self) -> str:
        return str(self.path)

    def latest_days(self, count: int) -> slice:
        """The last `count` days, which must follow one another; a DataError says which day is missing."""
        if self.days < count:
            raise DataError(f"{self.path}: {self.days} days, but {count} are needed; add the days before them")
        first = self.days - count
        missing = [gap for gap in self.gaps() if gap > first]
        if missing and self.dates:
            before, after = self.dates[missing[-1] - 1], self.dates[missing[-1]]
            raise DataError(
                f"{self.path}: a day is missing between {before} and {after}, among the latest {count}; add it"
            )
        return slice(first, self.days)


def channel_runs(channels: Sequence[int]) -> list[tuple[slice, slice]]:
    """Neighbouring channels as (slice in the output, slice on disk): few large reads, not many small ones."""
    runs: list[list[int]] = []
    for k, channel in enumerate(channels):
        if runs and channel == channels[k - 1] + 1:
            runs[-1][1] += 1
        else:
            runs.append([k, 1])
    return [(slice(k, k + n), slice(channels[k], channels[k] + n)) for k, n in runs]

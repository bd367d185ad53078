"""One event as a fire's file: its grid, its days, and on each of them what burnt and what layers tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES
from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.detections.agreement import Agreement, agreement_of
from fcer.data.detections.days import date_of, unseen_days
from fcer.data.detections.events import EARTH_KM
from fcer.data.detections.filters import DetectionSettings, Filtered
from fcer.data.detections.grid import Grid, grid_around, paint
from fcer.data.detections.layers import Layers
from fcer.data.detections.table import Detections
from fcer.data.fire import SYNTHETIC
from fcer.data.hdf5 import write_hdf5

__all__ = ["IngestedFire", "write_fire"]


@dataclass(frozen=True)
class IngestedFire:
    """One fire that was written."""

    path: Path
    lnglat: tuple[float, float]
    grid: Grid
    detections: int
    pixels: int
    """Burning ones over all days."""
    days: tuple[date, ...]
    """Those in the file."""
    last_seen: date
    """The day of its last detection."""
    missing: tuple[date, ...]
    """Days between that were hardly seen; they are not in the file, since they are no fire-free days."""
    agreement: Agreement | None
    """Of two satellites, where there are two."""


def write_fire(
    out: Path,
    found: Filtered,
    members: NDArray[np.int64],
    settings: DetectionSettings,
    layers: Layers,
    *,
    pair: tuple[int, int] | None,
    source: str,
    synthetic: bool = False,
) -> IngestedFire:
    """Write the event of these detections, and all else that burnt in its image on its days.

    Neighbouring events whose images overlap both show what burns in the overlap: a label without it would be wrong.
    """
    event, event_days = found.kept[members], found.days[members]
    grid = grid_around(event, margin=settings.margin, min_side=settings.min_side)
    numbers, missing = _days(found, event_days, settings.lead_days)
    dates = tuple(map(date_of, numbers))
    inside, inside_days = _inside(found, grid, numbers)
    hours = paint(grid, inside, np.searchsorted(numbers, inside_days), len(numbers))
    agreement = None
    if pair:
        one, other = (
            paint(grid, inside[mine], np.searchsorted(numbers, inside_days[mine]), len(numbers)) > 0
            for mine in (inside.satellite == satellite for satellite in pair)
        )
        agreement = agreement_of(pair, one, other)
    lnglat = grid.lnglat()
    path = _path(out, dates[0].year, date_of(event_days.min()), lnglat, synthetic=synthetic)
    write_hdf5(
        path,
        _images(hours, layers, grid, dates),
        (len(dates), len(CHANNELS), grid.height, grid.width),
        dates=dates,
        lnglat=lnglat,
        place=grid.place,
        source=source,
        channels=(*layers.channels, ACTIVE_FIRE),
    )
    return IngestedFire(
        path=path,
        lnglat=lnglat,
        grid=grid,
        detections=len(members),
        pixels=int(np.count_nonzero(hours)),
        days=dates,
        last_seen=date_of(event_days.max()),
        missing=tuple(map(date_of, missing)),
        agreement=agreement,
    )


def _days(found: Filtered, days: NDArray[np.int32], lead: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The days of a fire that say something, and those between them that do not."""
    end = found.first_day + len(found.day_counts)
    first, last = max(found.first_day, int(days.min()) - lead), min(end, int(days.max()) + lead + 1)
    numbers = np.arange(first, last)
    anywhere = found.day_counts
    unseen = ((anywhere == 0) | unseen_days(anywhere))[numbers - found.first_day]
    unseen |= unseen_days(np.bincount(days - first, minlength=len(numbers)))
    # Days before and after the fire belong to it as far as they follow one another
    before, after = numbers[unseen & (numbers < days.min())], numbers[unseen & (numbers > days.max())]
    inner = (numbers > before.max(initial=first - 1)) & (numbers < after.min(initial=last))
    return numbers[inner & ~unseen], numbers[inner & unseen]


def _inside(found: Filtered, grid: Grid, numbers: NDArray[np.int64]) -> tuple[Detections, NDArray[np.int32]]:
    """All that was kept around the grid on its days."""
    # A day by the sun begins and ends within half a day of the one by UTC, so times bound the search well enough
    low, high = ((numbers[0] - 1) * 1440, (numbers[-1] + 2) * 1440)
    part = slice(*np.searchsorted(found.kept.time, [low, high]))
    around, days = found.kept[part], found.days[part]
    lng, lat = np.radians(grid.lnglat())
    middle = np.array([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])
    reach_km = np.hypot(grid.height, grid.width) / 2 * PIXEL_METRES / 1000 + 2
    near = np.square(around.unit_vectors() - middle).sum(1) < (reach_km / EARTH_KM) ** 2
    near &= np.isin(days, numbers)
    return around[near], days[near]


def _images(
    hours: NDArray[np.float32], layers: Layers, grid: Grid, dates: tuple[date, ...]
) -> Iterator[NDArray[np.float32]]:
    """The days (23, height, width), NaN where nothing is known."""
    lasting = layers.lasting(grid)
    for day, burning in zip(dates, hours, strict=True):
        image = np.full((len(CHANNELS), grid.height, grid.width), np.nan, np.float32)
        for channel, values in {**lasting, **layers.of_day(grid, day)}.items():
            image[channel] = values
        image[ACTIVE_FIRE] = burning
        yield image


def _path(out: Path, year: int, first: date, lnglat: tuple[float, float], *, synthetic: bool) -> Path:
    """Named by when and where it was first seen: the same fire has the same name in the next download.

    One that never burnt says so there, and so in every file that is made of it.
    """
    lng, lat = lnglat
    place = f"{abs(lat) * 100:04.0f}{'NS'[lat < 0]}_{abs(lng) * 100:05.0f}{'EW'[lng < 0]}"
    return out / str(year) / f"fire_{f'{SYNTHETIC}_' if synthetic else ''}{first:%Y%m%d}_{place}.hdf5"

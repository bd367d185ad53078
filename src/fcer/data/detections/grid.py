"""A fire's own grid: pixels of 375 m in the UTM zone of its middle, and the pixels that a detection covers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES
from fcer.data.detections.table import Detections
from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.errors import DataError

__all__ = ["Grid", "grid_around", "paint", "transformed"]

_NORTH, _SOUTH = 84.0, -80.0
"""As far as UTM goes."""
_WIDE_KM = 600.0
"""Beyond that a grid would leave its zone so far that its pixels are no longer 375 m on the ground."""


@dataclass(frozen=True)
class Grid:
    """Rows run southwards from `top`, columns eastwards from `left`, in metres of the zone."""

    epsg: int
    left: float
    top: float
    height: int
    width: int

    @property
    def place(self) -> Place:
        """As a fire's file says it."""
        return Place(f"EPSG:{self.epsg}", (PIXEL_METRES, 0.0, self.left, 0.0, -PIXEL_METRES, self.top))

    def lnglat(self) -> tuple[float, float]:
        """Of the middle."""
        x, y = self.left + self.width / 2 * PIXEL_METRES, self.top - self.height / 2 * PIXEL_METRES
        lng, lat = transformed(f"EPSG:{self.epsg}", "EPSG:4326", np.array([x]), np.array([y]))
        return float(lng[0]), float(lat[0])

    def pixels(self, detections: Detections) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Row and column of detections, with fractions; pixel (0, 0) spans from 0 to 1."""
        x, y = transformed("EPSG:4326", f"EPSG:{self.epsg}", detections.longitude, detections.latitude)
        return (self.top - y) / PIXEL_METRES, (x - self.left) / PIXEL_METRES


def grid_around(detections: Detections, *, margin: int, min_side: int) -> Grid:
    """The grid that holds an event's detections and `margin` px around them, `min_side` px at least."""
    middle = detections.unit_vectors().mean(0)
    lng = float(np.degrees(np.arctan2(middle[1], middle[0])))
    lat = float(np.degrees(np.arctan2(middle[2], np.hypot(middle[0], middle[1]))))
    if detections.latitude.max() > _NORTH or detections.latitude.min() < _SOUTH:
        raise DataError(
            f"the fire at {lat:.2f}, {lng:.2f} lies beyond 84 N or 80 S, where there is no UTM zone; "
            "leave it out with --bbox"
        )
    zone = int((lng + 180) // 6) % 60 + 1
    epsg = (32600 if lat >= 0 else 32700) + zone
    x, y = transformed("EPSG:4326", f"EPSG:{epsg}", detections.longitude, detections.latitude)
    left, right, bottom, top = x.min(), x.max(), y.min(), y.max()
    if not max(right - left, top - bottom) < _WIDE_KM * 1000:
        raise DataError(
            f"the fire at {lat:.2f}, {lng:.2f} spans {max(right - left, top - bottom) / 1000:.0f} km, which no grid "
            "of one UTM zone holds: many fires at once; leave it out with --bbox, or give fewer days with --dates"
        )
    width, height = (
        max(min_side, int(np.ceil(size / PIXEL_METRES)) + 1 + 2 * margin) for size in (right - left, top - bottom)
    )
    # On multiples of 375 m, so that neighbouring fires of a zone share their pixels
    corner_left = np.floor((left + right) / 2 / PIXEL_METRES - width / 2) * PIXEL_METRES
    corner_top = np.ceil((top + bottom) / 2 / PIXEL_METRES + height / 2) * PIXEL_METRES
    return Grid(epsg, float(corner_left), float(corner_top), height, width)


def paint(grid: Grid, detections: Detections, days: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """(count, height, width) hours of the latest detection, 0 where none; `days` are places from 0 to count - 1.

    A detection covers each cell whose middle lies in its pixel of scan × track km, and always the nearest cell.
    The pixel's sides are taken as east-west and north-south, from which they differ by some 10 degrees. The hour
    after midnight is 24: 0 would mean that there is no fire, as it does in WildfireSpreadTS, which loses those.
    """
    latest = np.zeros((count, grid.height, grid.width), np.int32)
    row, column = grid.pixels(detections)
    rows = _span(row, detections.track)
    columns = _span(column, detections.scan)
    for down in range(int((rows[1] - rows[0]).max(initial=-1)) + 1):
        for right in range(int((columns[1] - columns[0]).max(initial=-1)) + 1):
            r, c = rows[0] + down, columns[0] + right
            covered = (r <= rows[1]) & (c <= columns[1])
            covered &= (r >= 0) & (r < grid.height) & (c >= 0) & (c < grid.width)
            np.maximum.at(latest, (days[covered], r[covered], c[covered]), detections.time[covered])
    hour = latest // 60 % 24
    return np.where(latest == 0, 0, np.where(hour == 0, 24, hour)).astype(np.float32)


def _span(middle: NDArray[np.float64], size_km: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last cell whose middle a pixel covers, with the nearest one always."""
    half = size_km.astype(np.float64) * 500 / PIXEL_METRES
    nearest = np.floor(middle)
    first, last = np.ceil(middle - half - 0.5), np.floor(middle + half - 0.5)
    return np.minimum(first, nearest).astype(np.int64), np.maximum(last, nearest).astype(np.int64)


def transformed(
    source: str, target: str, x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates in another system."""
    import_rasterio()
    from rasterio.warp import transform

    there = transform(source, target, x, y)
    return np.array(there[0]), np.array(there[1])

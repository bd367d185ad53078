"""How a pixel of an image lies on the ground: its size in metres, whatever the coordinate system."""

import math
from dataclasses import dataclass

import numpy as np

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio

__all__ = ["Ground", "ground_of"]

_EQUATOR_M = 6_378_137.0
_ECCENTRICITY2 = 0.006_694_379_990_14
"""Of the ellipsoid WGS 84: the radius at the equator, and the square of its eccentricity."""


@dataclass(frozen=True)
class Ground:
    """A pixel in the middle of an image."""

    width_m: float
    """From one column to the next."""
    height_m: float
    """From one row to the next."""
    area_m2: float


def ground_of(place: Place | None, height: int, width: int) -> Ground | None:
    """The size of a pixel of an image; None where nothing says where on earth the image lies."""
    if place is None or place.crs is None:
        return None
    rasterio = import_rasterio()
    from rasterio._err import CPLE_BaseError
    from rasterio.warp import transform

    row, column = height / 2, width / 2
    a, b, c, d, e, f = place.transform
    columns, rows = np.array([column, column + 1, column]), np.array([row, row, row + 1])
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    try:
        lng, lat = (np.array(values) for values in transform(place.crs, "EPSG:4326", x, y))
    except (CPLE_BaseError, rasterio.errors.RasterioError, ValueError):
        return None  # a coordinate system of its own, such as a drawing's, or none that can be read
    if not (np.isfinite(lng).all() and np.isfinite(lat).all()):
        return None
    east_m, north_m = _metres(lng, lat)
    area = abs(east_m[0] * north_m[1] - east_m[1] * north_m[0])
    return Ground(math.hypot(east_m[0], north_m[0]), math.hypot(east_m[1], north_m[1]), float(area))


def _metres(lng: np.ndarray, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far east and north the second and third of three nearby points are of the first."""
    sine = math.sin(math.radians(lat[0]))
    shrink = 1 - _ECCENTRICITY2 * sine**2
    along_parallel = _EQUATOR_M / math.sqrt(shrink) * math.cos(math.radians(lat[0]))
    along_meridian = _EQUATOR_M * (1 - _ECCENTRICITY2) / shrink**1.5
    turned = (lng[1:] - lng[0] + 180) % 360 - 180  # across the date line too
    return along_parallel * np.radians(turned), along_meridian * np.radians(lat[1:] - lat[0])

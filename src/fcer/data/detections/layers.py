"""Other channels from rasters: warped to a fire's grid, one file for all days or one for each (`{date}`)."""

from collections.abc import Sequence
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES
from fcer.data.channels import ACTIVE_FIRE, ANGLES, CHANNELS, LAND_COVER
from fcer.data.detections.grid import Grid
from fcer.data.geotiff import import_rasterio, open_raster
from fcer.errors import ConfigError, DataError

__all__ = ["Layers", "slope_and_aspect"]

_SLOPE, _ASPECT, _ELEVATION = (CHANNELS.index(name) for name in ("slope", "aspect", "elevation"))
_FORMATS = ("GTiff", "AAIGrid", "EHdr", "ENVI", "GRIB", "SRTMHGT", "USGSDEM")
"""Of GDAL's names, those that hold their numbers themselves and cannot name other files to read."""
_DATE = "{date}"
Image = NDArray[np.float32]


class Layers:
    """Rasters by channel. What has none, is missing; slope and aspect come from elevation where they are not given."""

    def __init__(self, given: Sequence[str]) -> None:
        """`given`: NAME=FILE for each, as typed; a name's blanks may be underscores, and it may be a number."""
        self.files: dict[int, str] = {}
        for text in given:
            name, equals, file = text.partition("=")
            channel = _channel(name.strip())
            if not equals or not file.strip() or channel in self.files:
                raise ConfigError(f"layer: {text!r} is no NAME=FILE, or names a channel twice")
            self.files[channel] = file.strip()
        for channel, file in self.files.items():
            if not _days_there(file):
                raise DataError(f"{file}: no such file; give --layer {_typed(channel)}=FILE a raster")

    @cached_property
    def channels(self) -> tuple[int, ...]:
        """Those that hold anything."""
        derived = (_SLOPE, _ASPECT) if _ELEVATION in self.files else ()
        return tuple(sorted({*self.files, *derived}))

    def lasting(self, grid: Grid) -> dict[int, Image]:
        """The channels that are the same on every day."""
        found = {c: _warped(file, c, grid) for c, file in self.files.items() if _DATE not in file}
        if _ELEVATION in found:
            for channel, image in zip((_SLOPE, _ASPECT), slope_and_aspect(found[_ELEVATION]), strict=True):
                found.setdefault(channel, image)
        return found

    def of_day(self, grid: Grid, day: date) -> dict[int, Image]:
        """The channels of one day; a day without a file has none."""
        files = {c: file.replace(_DATE, day.isoformat()) for c, file in self.files.items() if _DATE in file}
        return {c: _warped(file, c, grid) for c, file in files.items() if Path(file).is_file()}


def slope_and_aspect(elevation: Image) -> tuple[Image, Image]:
    """Degrees of the slope, and where it faces: downhill, clockwise from north."""
    north_south, west_east = np.gradient(elevation, PIXEL_METRES)
    slope = np.degrees(np.arctan(np.hypot(north_south, west_east)))
    # Rows run southwards: the downhill vector points (east, north) = (-d/dcolumn, +d/drow)
    aspect = np.degrees(np.arctan2(-west_east, north_south)) % 360
    return slope.astype(np.float32), aspect.astype(np.float32)


def _channel(name: str) -> int:
    names = [_plain(known) for known in CHANNELS]
    if name.isdecimal() and int(name) < len(CHANNELS):
        channel = int(name)
    elif _plain(name) in names:
        channel = names.index(_plain(name))
    else:
        raise ConfigError(f"layer: there is no channel {name!r}; there are {', '.join(map(_plain, CHANNELS[:-1]))}")
    if channel == ACTIVE_FIRE:
        raise ConfigError("layer: active fire comes from the detections; leave it out")
    return channel


def _plain(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _typed(channel: int) -> str:
    return _plain(CHANNELS[channel])


def _days_there(file: str) -> bool:
    path = Path(file.replace(_DATE, "????-??-??"))
    return any(path.parent.glob(path.name)) if _DATE in path.name or "?" in path.name else path.is_file()


def _warped(file: str, channel: int, grid: Grid) -> Image:
    """The raster on the grid, NaN where it does not reach."""
    rasterio = import_rasterio()
    from rasterio._err import CPLE_BaseError
    from rasterio.warp import Resampling, reproject

    # What has no in-between, such as classes and directions, keeps the nearest value
    way = Resampling.nearest if channel in (*ANGLES, LAND_COVER) else Resampling.bilinear
    image = np.full((grid.height, grid.width), np.nan, np.float32)
    try:
        with open_raster(file, _FORMATS) as source:
            if source.count != 1 or source.crs is None:
                what = "does not say where on earth it lies" if source.crs is None else f"has {source.count} bands"
                raise DataError(f"{file}: {what}; give --layer a raster of one band with a coordinate system")
            reproject(
                rasterio.band(source, 1),
                image,
                dst_transform=rasterio.Affine(*grid.place.transform),
                dst_crs=grid.place.crs,
                dst_nodata=np.nan,
                resampling=way,
            )
    except (rasterio.errors.RasterioError, CPLE_BaseError) as error:  # the second of places that are none
        raise DataError(
            f"{file}: cannot be read ({error}); give --layer a GeoTIFF, as gdal_translate makes of other formats"
        ) from None
    return image

"""A fire as released: a folder `YEAR/fire_X` with one GeoTIFF of 23 bands a day, `DATE.tif`.

In these files the active-fire band holds the time of detection as hhmm, and NaN where there is none.
"""

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.fire import EVERYWHERE, Fire, Place
from fcer.errors import DataError
from fcer.runtime.files import atomic_path, could_hold

__all__ = ["GeoTIFFFire", "check_size", "day_files", "import_rasterio", "open_geotiff", "open_raster", "write_geotiff"]

_DRIVER = "GTiff"  # by a file's content alone GDAL would take it for anything, such as a list of other files
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})\.tif")


@dataclass(eq=False)
class GeoTIFFFire(Fire):
    """A fire in a folder of GeoTIFFs."""

    tifs: list[Path] = field(default_factory=list, kw_only=True)

    def read(
        self, days: slice, channels: Sequence[int], rows: slice = EVERYWHERE, columns: slice = EVERYWHERE
    ) -> NDArray[np.float32]:
        """(days, channels, rows, columns) of the raw values, active fire as in the HDF5 form."""
        rasterio = import_rasterio()
        (top, bottom, _), (left, right, _) = rows.indices(self.height), columns.indices(self.width)
        window = ((top, bottom), (left, right))
        tifs = self.tifs[days]
        values = np.empty((len(tifs), len(channels), bottom - top, right - left), np.float32)
        bands = [channel + 1 for channel in channels]
        for day, tif in zip(values, tifs, strict=True):
            try:
                with open_raster(tif) as image:
                    image.read(bands, window=window, out=day)
                    declared = image.nodatavals
            except rasterio.errors.RasterioIOError:
                raise DataError(f"{tif}: the GeoTIFF is truncated or damaged; download it again") from None
            for band, channel in zip(day, channels, strict=True):
                band[band == declared[channel]] = np.nan  # where none is declared nothing equals it
        if ACTIVE_FIRE in channels:
            _hours(values[:, channels.index(ACTIVE_FIRE)])
        return values

    def files(self) -> list[Path]:
        """One file a day."""
        return self.tifs


def day_files(folder: Path) -> list[Path]:
    """The days of a fire's folder in order; other files in it, such as previews and second copies, are no days."""
    return sorted(tif for tif in folder.glob("*.tif") if _date(tif) is not None)


def open_geotiff(folder: Path, *, any_folder: bool = False) -> GeoTIFFFire:
    """Open and check one fire's folder; a DataError says which day is wrong and how.

    With `any_folder` it may lie anywhere: the year is then that of its first day.
    """
    rasterio = import_rasterio()
    tifs = day_files(folder)
    if not tifs:
        raise DataError(f"{folder}: holds no DATE.tif; remove the folder or download the fire again")
    if not any_folder and not folder.parent.name.isdigit():
        raise DataError(f"{folder}: its parent folder does not name the year; put it in YEAR/")
    sizes, places = set(), set()
    for tif in tifs:
        try:
            with open_raster(tif) as image:
                check_size(tif, image)
                sizes.add((image.height, image.width))
                if image.count != len(CHANNELS):
                    raise DataError(
                        f"{tif}: {image.count} bands, but WildfireSpreadTS has {len(CHANNELS)}; "
                        "download it again, or remove the fire's folder"
                    )
                crs, bounds = image.crs, image.bounds
                places.add(Place.said(crs.to_string() if crs else None, tuple(image.transform)))
        except PermissionError:
            raise DataError(f"{tif}: no permission to read it; run chmod +r on it or ask its owner") from None
        except rasterio.errors.RasterioIOError as error:
            if "Permission denied" in str(error):
                reason = "no permission to read it; run chmod +r on it or ask its owner"
            else:
                reason = "the GeoTIFF is truncated or damaged; download it again"
            raise DataError(f"{tif}: {reason}") from None
    if len(sizes) > 1:
        raise DataError(f"{folder}: its days differ in size ({sorted(sizes)}); download the fire again")
    if len(places) > 1:
        raise DataError(f"{folder}: its days lie at different places on earth; download the fire again")
    height, width = sizes.pop()
    dates = tuple(day for tif in tifs if (day := _date(tif)))
    return GeoTIFFFire(
        path=folder,
        year=dates[0].year if any_folder else int(folder.parent.name),
        name=folder.name,
        days=len(tifs),
        height=height,
        width=width,
        dates=dates,
        place=places.pop(),
        lnglat=_centre(crs, bounds) if crs else None,
        tifs=tifs,
    )


def write_geotiff(path: Path, day: NDArray[np.float32], place: Place) -> None:
    """Write one day (23, height, width) as it is released: active fire as hhmm, NaN where none."""
    rasterio = import_rasterio()
    bands = day.copy()
    hours = bands[ACTIVE_FIRE]
    # The minute is lost in the HDF5 form, so any will do; half past keeps clear of rounding
    bands[ACTIVE_FIRE] = np.where(hours > 0, hours * 100 + 30, np.nan)
    profile = {
        "driver": _DRIVER,
        "count": len(CHANNELS),
        "height": day.shape[1],
        "width": day.shape[2],
        "dtype": "float32",
        "crs": place.crs,
        "transform": rasterio.Affine(*place.transform),
        "nodata": np.nan,
        "compress": "deflate",
    }
    with atomic_path(path) as partial, rasterio.open(partial, "w", **profile) as image:
        image.write(bands)
        image.descriptions = CHANNELS


@contextmanager
def open_raster(tif: Path | str, formats: Sequence[str] = (_DRIVER,)) -> Iterator[Any]:
    """The file, read as one of these formats and no other: some that GDAL knows are lists of files to read instead.

    GDAL quotes a damaged file's bytes in its messages; rasterio then fails to decode what it would only have logged,
    and Python would print that as a traceback of its own.
    """
    usual = sys.unraisablehook

    def hook(failed: Any) -> None:
        if not isinstance(failed.exc_value, UnicodeDecodeError):
            usual(failed)

    sys.unraisablehook = hook
    try:
        with _first_that_reads(tif, formats) as image:
            yield image
    finally:
        sys.unraisablehook = usual


def check_size(tif: Path, image: Any) -> None:
    """A DataError where an open raster declares more pixels than its bytes can stand for."""
    declared = image.count * image.height * image.width * np.dtype(image.dtypes[0]).itemsize
    if not could_hold(tif.stat().st_size, declared):
        raise DataError(
            f"{tif}: declares {image.count} bands of {image.height} x {image.width} pixels, more than its "
            f"{tif.stat().st_size} bytes can hold; download or make it again"
        )


def _first_that_reads(tif: Path | str, formats: Sequence[str]) -> Any:
    """The file, opened as the first format that takes it; the first one's complaint where none does."""
    rasterio, complaints = import_rasterio(), []
    for name in formats:
        try:
            return rasterio.open(tif, driver=name)
        except rasterio.errors.RasterioIOError as error:
            complaints.append(error)
    raise complaints[0]


def _hours(detected: NDArray[np.float32]) -> None:
    """hhmm to the hour, none to 0, in place. A detection in the hour after midnight becomes 0, as it does in
    the dataset's own conversion, which released statistics and checkpoints were made with."""
    np.nan_to_num(detected, copy=False)
    np.floor_divide(detected, 100, out=detected)


def _date(tif: Path) -> date | None:
    """The day that a file's name says; None where it says none."""
    found = _DATE.fullmatch(tif.name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _centre(crs: object, bounds: tuple[float, float, float, float]) -> tuple[float, float] | None:
    """Longitude and latitude, where the coordinate system is one of the earth's."""
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import RasterioError
    from rasterio.warp import transform

    left, bottom, right, top = bounds
    try:
        (lng,), (lat,) = transform(crs, "EPSG:4326", [(left + right) / 2], [(bottom + top) / 2])
    except (CPLE_BaseError, RasterioError):
        return None
    return lng, lat


def import_rasterio() -> ModuleType:
    """The optional package, or a DataError that says how to get it."""
    try:
        import rasterio
        import rasterio.errors
    except ImportError:
        raise DataError("GeoTIFFs need the package rasterio: run pip install 'fcer[geo]'") from None
    # Files without a place on earth are fine for training; rasterio would warn at each of them
    warnings.filterwarnings("ignore", category=rasterio.errors.NotGeoreferencedWarning)
    return rasterio  # type: ignore[no-any-return]

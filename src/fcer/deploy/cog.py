"""Maps as Cloud-Optimized GeoTIFFs: any GIS opens them, and reads of a remote one only what it shows."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.errors import DataError
from fcer.runtime.checksums import UNSEALED, seal, seal_text
from fcer.runtime.files import atomic_path

__all__ = ["NO_DATA", "is_as_written", "write_cog"]

NO_DATA = 255
"""In a mask, where nothing is known."""
_TILE = 512
_CHECKSUM = "CHECKSUM"


def write_cog(path: Path, bands: Mapping[str, NDArray[Any]], *, place: Place | None, tags: Mapping[str, str]) -> None:
    """Write maps (H, W) by their description; the file appears once it is whole.

    No data is NaN; of masks, which are uint8, it is `NO_DATA`.
    """
    rasterio = import_rasterio()
    stack = np.stack(list(bands.values()))
    is_mask = stack.dtype == np.uint8
    stack = stack if is_mask else stack.astype(np.float32, copy=False)
    count, height, width = stack.shape
    profile = {
        "driver": "COG",
        "count": count,
        "height": height,
        "width": width,
        "dtype": "uint8" if is_mask else "float32",
        "nodata": NO_DATA if is_mask else np.nan,
        "compress": "DEFLATE",
        "predictor": "YES",
        "blocksize": _TILE,
        # A mean of fire and no fire is neither: overviews hold pixels of the map itself
        "overview_resampling": "NEAREST",
    }
    crs = None if place is None or place.crs is None else _crs(path, place.crs)
    if place is not None:
        profile |= {"crs": crs, "transform": rasterio.Affine(*place.transform)}
    # What does not fit in a GeoTIFF, GDAL would put into a second file beside it
    with atomic_path(path) as partial, rasterio.Env(GDAL_PAM_ENABLED=False):
        with rasterio.open(partial, "w", **profile) as image:
            image.write(stack)
            image.descriptions = tuple(bands)
            image.update_tags(**tags, **_of_tiff(tags), **{_CHECKSUM: UNSEALED})
        with rasterio.open(partial) as written:
            if written.crs != crs:
                raise DataError(
                    f"{path}: a GeoTIFF cannot hold the input's coordinate system; reproject the fire to another"
                )
            seen = _crc(written)
        seal(partial, seen)


def is_as_written(image: Any) -> bool:
    """Whether place, tags and pixels of an open map are those that `write_cog` wrote; of maps without a checksum, yes.

    A copy that GDAL made, packed in another way, still is; one that was warped or edited is not.
    """
    said = image.tags().get(_CHECKSUM)
    return said is None or said == seal_text(_crc(image))


def _crc(image: Any) -> int:
    foreign = ("AREA_OR_POINT", "TIFFTAG_", _CHECKSUM)  # GDAL's own, which copies may lack
    tags = sorted((key, value) for key, value in image.tags().items() if not key.startswith(foreign))
    crs = image.crs.to_string() if image.crs else ""
    # the texts of other systems differ with PROJ's version
    place = [crs if crs.startswith("EPSG:") else "", *tuple(image.transform)[:6]]
    head = json.dumps([tags, place, image.shape, image.descriptions])
    bands = image.read()
    return zlib.crc32(bands.astype(bands.dtype.newbyteorder("<"), copy=False).tobytes(), zlib.crc32(head.encode()))


def _of_tiff(tags: Mapping[str, str]) -> dict[str, str]:
    """When it was made and by what, as any reader of TIFF knows it."""
    made = tags.get("CREATED")
    known = {"TIFFTAG_DATETIME": f"{made[:10].replace('-', ':')} {made[11:19]}"} if made else {}
    return {**known, "TIFFTAG_SOFTWARE": f"fcer {tags['FCER_VERSION']}"} if "FCER_VERSION" in tags else known


def _crs(path: Path, said: str) -> object:
    from rasterio.crs import CRS

    try:
        return CRS.from_user_input(said)
    except ValueError:  # as rasterio's own error is one
        raise DataError(
            f"{path}: the input's coordinate system {said[:60]!r} cannot be read; convert the fire again"
        ) from None

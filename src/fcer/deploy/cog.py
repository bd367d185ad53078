"""Maps as Cloud-Optimized GeoTIFFs: any GIS opens them, and reads of a remote one only what it shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.errors import DataError
from fcer.runtime.files import atomic_path

__all__ = ["NO_DATA", "write_cog"]

NO_DATA = 255
"""In a mask, where nothing is known."""
_TILE = 512


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
            image.update_tags(**tags, **_of_tiff(tags))
        with rasterio.open(partial) as written:
            if written.crs != crs:
                raise DataError(
                    f"{path}: a GeoTIFF cannot hold the input's coordinate system; reproject the fire to another"
                )


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

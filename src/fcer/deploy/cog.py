"""Maps as Cloud-Optimized GeoTIFFs: any GIS opens them, and reads of a remote one only what it shows."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.errors import DataError
from fcer.runtime.files import atomic_path

__all__ = ["write_cog"]

_TILE = 512


def write_cog(
    path: Path, bands: Mapping[str, NDArray[np.float32]], *, place: Place | None, tags: Mapping[str, str]
) -> None:
    """Write maps (H, W) by their description, NaN where there is no data; the file appears once it is whole."""
    rasterio = import_rasterio()
    stack = np.stack(list(bands.values())).astype(np.float32, copy=False)
    count, height, width = stack.shape
    profile = {
        "driver": "COG",
        "count": count,
        "height": height,
        "width": width,
        "dtype": "float32",
        "nodata": np.nan,
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
            image.update_tags(**tags)
        with rasterio.open(partial) as written:
            if written.crs != crs:
                raise DataError(
                    f"{path}: a GeoTIFF cannot hold the input's coordinate system; reproject the fire to another"
                )


def _crs(path: Path, said: str) -> object:
    from rasterio.crs import CRS

    try:
        return CRS.from_user_input(said)
    except ValueError:  # as rasterio's own error is one
        raise DataError(
            f"{path}: the input's coordinate system {said[:60]!r} cannot be read; convert the fire again"
        ) from None

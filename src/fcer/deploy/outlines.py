"""Masks as polygons on earth, in the way of GeoJSON (RFC 7946): longitude and latitude, outer rings anticlockwise."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.deploy.ground import Ground
from fcer.runtime.files import write_text

__all__ = ["Feature", "outlines", "write_geojson"]

_DIGITS = 6
"""Of degrees: a tenth of a metre."""

Feature = dict[str, Any]


def outlines(
    mask: NDArray[np.bool_],
    place: Place,
    ground: Ground,
    means: Mapping[str, NDArray[np.float32]],
    properties: Mapping[str, Any],
) -> list[Feature]:
    """A polygon for each part of the mask that hangs together by sides of pixels.

    Each has its area, the mean of each of the maps `means` over its pixels, and `properties`.
    """
    rasterio = import_rasterio()
    from rasterio.features import shapes
    from rasterio.warp import transform_geom

    labels, _ = ndimage.label(mask)
    numbered = labels.astype(np.int32)
    pixels = np.bincount(numbered.ravel())
    sums = {name: np.bincount(numbered.ravel(), weights=values.ravel()) for name, values in means.items()}
    features = []
    for geometry, value in shapes(numbered, mask, connectivity=4, transform=rasterio.Affine(*place.transform)):
        label = int(value)
        about = {"area_km2": round(float(pixels[label] * ground.area_m2 / 1e6), 4)}
        about |= {name: round(float(total[label] / pixels[label]), 4) for name, total in sums.items()}
        on_earth = _wound(transform_geom(place.crs, "EPSG:4326", geometry, precision=_DIGITS))
        features.append({"type": "Feature", "geometry": on_earth, "properties": {**properties, **about}})
    return features


def write_geojson(path: Path, features: list[Feature]) -> None:
    """Write the polygons; the file appears once it is whole."""
    collection = {"type": "FeatureCollection", "features": features}
    write_text(path, json.dumps(collection, allow_nan=False, separators=(",", ":")) + "\n")


def _wound(geometry: Mapping[str, Any]) -> dict[str, Any]:
    """The geometry with outer rings anticlockwise and holes clockwise; across the date line it has several parts."""
    several = geometry["type"] == "MultiPolygon"
    polygons = geometry["coordinates"] if several else [geometry["coordinates"]]
    turned = [[_turned(ring, outer=k == 0) for k, ring in enumerate(rings)] for rings in polygons]
    return {"type": geometry["type"], "coordinates": turned if several else turned[0]}


def _turned(ring: list[list[float]], *, outer: bool) -> list[list[float]]:
    x, y = np.array(ring)[:, :2].T
    x, y = x - x[0], y - y[0]  # degrees far from 0 would cancel
    anticlockwise = bool((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() > 0)
    points = [list(point) for point in ring]
    return points if anticlockwise == outer else points[::-1]

"""Values at risk: which of an agency's assets lie in which zone, and how probable fire is there."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.deploy.calibrated import CalibratedMap
from fcer.deploy.fire_map import FireMap
from fcer.deploy.gis_extra import import_pyogrio
from fcer.errors import DataError
from fcer.runtime.csv_cells import rows_text
from fcer.runtime.files import atomic_path

__all__ = ["Asset", "assets_at_risk", "read_assets", "write_rows"]

_FORMATS = ("GPKG", "GeoJSON", "GeoJSONSeq", "ESRI Shapefile", "FlatGeobuf", "OpenFileGDB", "KML", "LIBKML", "GPX")
"""By GDAL's names, those whose features lie in the file itself: others are lists of files to read instead."""


@dataclass(frozen=True)
class Asset:
    """One thing of a vector layer."""

    number: int
    """From 0, in the layer's order."""
    attributes: dict[str, Any]
    geometry: dict[str, Any]
    """As GeoJSON, longitude and latitude."""


def read_assets(path: Path) -> tuple[Asset, ...]:
    """The points, lines or polygons of a file's first layer, on longitude and latitude."""
    raw = import_pyogrio("assets")
    from pyogrio import read_info
    from pyogrio.errors import DataSourceError

    if not path.exists():
        raise DataError(f"{path}: no such file; give --assets a vector layer, such as a GeoPackage or GeoJSON")
    try:
        if (form := read_info(str(path))["driver"]) not in _FORMATS:
            raise ValueError(f"{form} is not one of {', '.join(_FORMATS)}")
        meta, _, geometry, values = raw.read(str(path))
    except (DataSourceError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a vector layer ({error}); give --assets another") from None
    if geometry is None or meta["crs"] is None:
        lacking = "has no geometry" if geometry is None else "does not say its coordinate system"
        raise DataError(f"{path}: its first layer {lacking}; give --assets a layer with both")
    text = io.BytesIO()
    raw.write(
        text, geometry, values, meta["fields"], driver="GeoJSON", geometry_type=meta["geometry_type"],
        crs=meta["crs"], RFC7946="YES",
    )  # fmt: skip
    features = json.loads(text.getvalue())["features"]
    return tuple(
        Asset(number, feature["properties"], feature["geometry"])
        for number, feature in enumerate(features)
        if feature["geometry"] is not None
    )


def assets_at_risk(
    assets: Sequence[Asset], place: Place, predicted: FireMap, calibrated: CalibratedMap
) -> list[dict[str, Any]]:
    """A row for each asset that the map reaches, the most probable fire first.

    An asset counts for every pixel that it touches; `zone_M` is the share of them in the zone for a miss of M, and
    `zone` the smallest zone that it touches, by its miss.
    """
    rasterio = import_rasterio()
    from rasterio.features import rasterize
    from rasterio.warp import transform_geom

    shape, transform = calibrated.probability.shape, rasterio.Affine(*place.transform)
    known = ~np.isnan(calibrated.probability)
    rows = []
    for asset in assets:
        there = transform_geom("EPSG:4326", place.crs, asset.geometry)
        touched = rasterize([(there, 1)], shape, transform=transform, all_touched=True, dtype=np.uint8).astype(bool)
        inside = touched & known
        if not inside.any():
            continue
        shares = {zone.rule.miss: float(zone.mask[inside].mean()) for zone in calibrated.zones}
        innermost = [miss for miss, share in shares.items() if share > 0]
        rows.append(
            {
                "asset": asset.number,
                "probability_max": round(float(calibrated.probability[inside].max()), 4),
                "probability_mean": round(float(calibrated.probability[inside].mean()), 4),
                "uncertainty_max": round(float(predicted.uncertainty[inside].max()), 4),
                "zone": f"{max(innermost):g}" if innermost else "",
                **{f"zone_{miss:g}": round(share, 4) for miss, share in shares.items()},
                "burning_today": int(predicted.today[inside].any()),
                "pixels": int(inside.sum()),
                **{f"asset_{key}": str(value) for key, value in asset.attributes.items()},
            }
        )
    return sorted(rows, key=lambda row: -row["probability_max"])


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV, with the columns of all of them; the file appears once it is whole."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with atomic_path(path) as partial:
        partial.write_text(rows_text(rows, columns), encoding="utf-8", newline="")

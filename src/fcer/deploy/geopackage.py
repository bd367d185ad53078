"""Polygons as a GeoPackage: perimeter, zones and contours as layers of one file."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

from fcer.deploy.gis_extra import import_pyogrio
from fcer.deploy.outlines import Feature
from fcer.deploy.wfigs import LAYERS, wfigs_feature
from fcer.runtime.files import atomic_path

__all__ = ["write_geopackage"]

_VERSION = {"VERSION": "1.2"}
"""Of the format: GDAL's own default is newer, and programs of a few years ago warn of it."""


def write_geopackage(path: Path, features: Sequence[Feature]) -> None:
    """Write a layer for each kind of polygon that there is; the file appears once it is whole."""
    raw = import_pyogrio()
    with atomic_path(path) as partial:
        partial.unlink()  # a file that is there and empty is no GeoPackage to add a layer to
        for kind, layer in LAYERS.items():
            of_kind = [wfigs_feature(feature) for feature in features if feature["properties"]["kind"] == kind]
            if not of_kind:
                continue
            # GDAL's own reader settles the types of attributes and the binary form of polygons
            text = json.dumps({"type": "FeatureCollection", "features": of_kind}, allow_nan=False)
            meta, _, geometry, values = raw.read(io.BytesIO(text.encode()))
            raw.write(
                str(partial),
                geometry,
                values,
                meta["fields"],
                layer=layer,
                driver="GPKG",
                geometry_type="MultiPolygon",
                crs="EPSG:4326",
                promote_to_multi=True,
                append=partial.exists(),
                dataset_options=_VERSION,
            )

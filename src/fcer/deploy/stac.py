"""A STAC item of a forecast: what catalogues need to find it by place, day, reference time and horizon."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from fcer.data.fire import Place
from fcer.data.geotiff import import_rasterio
from fcer.deploy.gis_extra import import_pystac
from fcer.runtime.files import write_text

__all__ = ["FORECAST", "PROJECTION", "write_stac_item"]

FORECAST = "https://stac-extensions.github.io/forecast/v0.2.0/schema.json"
PROJECTION = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"

_KINDS = {
    ".tif": ("image/tiff; application=geotiff; profile=cloud-optimized", ["data"]),
    ".tiff": ("image/tiff; application=geotiff; profile=cloud-optimized", ["data"]),
    ".geojson": ("application/geo+json", ["data"]),
    ".gpkg": ("application/geopackage+sqlite3", ["data"]),
    ".kml": ("application/vnd.google-earth.kml+xml", ["data"]),
    ".png": ("image/png", ["thumbnail"]),
    ".qml": ("application/xml", ["metadata"]),
    ".csv": ("text/csv", ["data"]),
}
"""The media type and the role of a file."""


def write_stac_item(
    path: Path,
    files: Mapping[str, Path],
    *,
    place: Place,
    shape: tuple[int, int],
    days: tuple[date, date],
    about: Mapping[str, Any],
    bands: list[str],
) -> None:
    """Write the item of a forecast; the file appears once it is whole.

    Parameters
    ----------
    files
        What belongs to it by key, `map` first: named relative to the item.
    place, shape
        Where the map lies, and its rows and columns.
    days
        The last day seen, which is the reference, and the day predicted.
    about
        What the map's tags say.
    bands
        Their descriptions.
    """
    pystac = import_pystac()
    box = _box(place, shape)
    seen, predicted = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days)
    synthetic = "synthetic" in about
    properties = {
        "title": f"{'SYNTHETIC ' if synthetic else ''}fire forecast of {about['fire']} for {days[1]}",
        "created": about["created"],
        "start_datetime": _said(predicted),
        "end_datetime": _said(predicted + timedelta(days=1) - timedelta(seconds=1)),
        "forecast:reference_datetime": _said(seen),
        "forecast:horizon": f"P{(predicted - seen).days}D",
        "forecast:duration": "P1D",
        **_projection(place, shape),
        **{f"fcer:{key}": value for key, value in about.items() if key not in ("created", "fire")},
    }
    west, south, east, north = box
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    item = pystac.Item(
        id=f"{'synthetic-' if synthetic else ''}{about['fire']}-{days[1]}",
        geometry={"type": "Polygon", "coordinates": [ring]},
        bbox=list(box),
        datetime=predicted,
        properties=properties,
        stac_extensions=[FORECAST, PROJECTION],
    )
    for key, file in files.items():
        kind, roles = _KINDS[file.suffix]
        extra = {"bands": [{"name": f"b{k}", "description": text} for k, text in enumerate(bands, 1)]}
        asset = pystac.Asset(
            href=f"./{file.name}", media_type=kind, roles=roles, extra_fields=extra if key == "map" else {}
        )
        item.add_asset(key, asset)
    write_text(path, json.dumps(item.to_dict(include_self_link=False), indent=1) + "\n")


def _said(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _projection(place: Place, shape: tuple[int, int]) -> dict[str, Any]:
    from rasterio.crs import CRS

    code = CRS.from_user_input(place.crs).to_authority()
    named = {"proj:code": ":".join(code)} if code else {"proj:code": None, "proj:wkt2": place.crs}
    return {**named, "proj:shape": list(shape), "proj:transform": [*place.transform, 0, 0, 1]}


def _box(place: Place, shape: tuple[int, int]) -> tuple[float, float, float, float]:
    rasterio = import_rasterio()
    from rasterio.transform import array_bounds
    from rasterio.warp import transform_bounds

    bounds = array_bounds(*shape, rasterio.Affine(*place.transform))
    west, south, east, north = transform_bounds(place.crs, "EPSG:4326", *bounds)
    return round(west, 6), round(south, 6), round(east, 6), round(north, 6)

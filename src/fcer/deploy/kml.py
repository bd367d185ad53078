"""Polygons as KML, for globes and phones: a folder for each kind, the day they are of, and what they promise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from fcer.deploy.outlines import Feature
from fcer.deploy.wfigs import LAYERS
from fcer.runtime.files import atomic_path

__all__ = ["write_kml"]

_COLOURS = {"perimeter": "ff222222", "zone": "ff5b18c2", "contour": "ff1c6ae6"}
"""As KML writes them: opacity, blue, green, red."""


def write_kml(path: Path, features: Sequence[Feature]) -> None:
    """Write the polygons; the file appears once it is whole."""
    root = ET.Element("kml", xmlns="http://www.opengis.net/kml/2.2")
    document = _add(root, "Document")
    synthetic = any("synthetic" in feature["properties"] for feature in features)
    _add(document, "name", f"{'SYNTHETIC ' if synthetic else ''}fire forecast: {path.stem}")
    for kind, colour in _COLOURS.items():
        style = _add(document, "Style", id=kind)
        line = _add(style, "LineStyle")
        _add(line, "color", colour)
        _add(line, "width", "2")
        _add(_add(style, "PolyStyle"), "color", f"33{colour[2:]}")
    for kind, layer in LAYERS.items():
        folder = _add(document, "Folder")
        _add(folder, "name", layer)
        for feature in features:
            if feature["properties"]["kind"] == kind:
                _placemark(folder, feature, kind)
    with atomic_path(path) as partial:
        ET.ElementTree(root).write(partial, encoding="utf-8", xml_declaration=True)


def _placemark(folder: ET.Element, feature: Feature, kind: str) -> None:
    about = feature["properties"]
    mark = _add(folder, "Placemark")
    _add(mark, "name", _name(about))
    _add(mark, "description", about.get("guarantee", "The forecast of a model, not an observed fire."))
    if about["predicted_date"] != "unknown":
        _add(_add(mark, "TimeStamp"), "when", about["predicted_date"])
    _add(mark, "styleUrl", f"#{kind}")
    data = _add(mark, "ExtendedData")
    for key, value in about.items():
        _add(_add(data, "Data", name=key), "value", str(value))
    geometry = feature["geometry"]
    several = geometry["type"] == "MultiPolygon"
    holder = _add(mark, "MultiGeometry") if several else mark
    for rings in geometry["coordinates"] if several else [geometry["coordinates"]]:
        polygon = _add(holder, "Polygon")
        for place, ring in enumerate(rings):
            border = _add(_add(polygon, "innerBoundaryIs" if place else "outerBoundaryIs"), "LinearRing")
            _add(border, "coordinates", " ".join(f"{lng},{lat}" for lng, lat in ring))


def _name(about: Mapping[str, Any]) -> str:
    what = {
        "perimeter": "perimeter",
        "zone": f"zone, miss at most {about.get('expected_miss_at_most')}",
        "contour": f"probability at least {about.get('probability_at_least')}",
    }[about["kind"]]
    return f"{'SYNTHETIC ' if 'synthetic' in about else ''}{about['fire']}: {what}"


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child

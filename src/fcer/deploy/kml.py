"""Polygons as KML, for globes and phones: a folder for each kind, the day they are of, and what they promise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from fcer.deploy.outlines import Feature
from fcer.deploy.wfigs import LAYERS
from fcer.runtime.files import atomic_path

__all__ = ["add_element", "write_kml"]

_COLOURS = {"perimeter": "ff222222", "zone": "ff5b18c2", "contour": "ff1c6ae6"}
"""As KML writes them: opacity, blue, green, red."""


def write_kml(path: Path, features: Sequence[Feature]) -> None:
    """Write the polygons; the file appears once it is whole."""
    root = ET.Element("kml", xmlns="http://www.opengis.net/kml/2.2")
    document = add_element(root, "Document")
    synthetic = any("synthetic" in feature["properties"] for feature in features)
    add_element(document, "name", f"{'SYNTHETIC ' if synthetic else ''}fire forecast: {path.stem}")
    for kind, colour in _COLOURS.items():
        style = add_element(document, "Style", id=kind)
        line = add_element(style, "LineStyle")
        add_element(line, "color", colour)
        add_element(line, "width", "2")
        add_element(add_element(style, "PolyStyle"), "color", f"33{colour[2:]}")
    for kind, layer in LAYERS.items():
        folder = add_element(document, "Folder")
        add_element(folder, "name", layer)
        for feature in features:
            if feature["properties"]["kind"] == kind:
                _placemark(folder, feature, kind)
    with atomic_path(path) as partial:
        ET.ElementTree(root).write(partial, encoding="utf-8", xml_declaration=True)


def _placemark(folder: ET.Element, feature: Feature, kind: str) -> None:
    about = feature["properties"]
    mark = add_element(folder, "Placemark")
    add_element(mark, "name", _name(about))
    add_element(mark, "description", about.get("guarantee", "The forecast of a model, not an observed fire."))
    if about["predicted_date"] != "unknown":
        add_element(add_element(mark, "TimeStamp"), "when", about["predicted_date"])
    add_element(mark, "styleUrl", f"#{kind}")
    data = add_element(mark, "ExtendedData")
    for key, value in about.items():
        add_element(add_element(data, "Data", name=key), "value", str(value))
    geometry = feature["geometry"]
    several = geometry["type"] == "MultiPolygon"
    holder = add_element(mark, "MultiGeometry") if several else mark
    for rings in geometry["coordinates"] if several else [geometry["coordinates"]]:
        polygon = add_element(holder, "Polygon")
        for place, ring in enumerate(rings):
            border = add_element(add_element(polygon, "innerBoundaryIs" if place else "outerBoundaryIs"), "LinearRing")
            add_element(border, "coordinates", " ".join(f"{lng},{lat}" for lng, lat in ring))


def _name(about: Mapping[str, Any]) -> str:
    what = {
        "perimeter": "perimeter",
        "zone": f"zone, miss at most {about.get('expected_miss_at_most')}",
        "contour": f"probability at least {about.get('probability_at_least')}",
    }[about["kind"]]
    return f"{'SYNTHETIC ' if 'synthetic' in about else ''}{about['fire']}: {what}"


def add_element(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """A new child of an element of XML, with its text."""
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child

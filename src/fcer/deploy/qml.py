"""How QGIS draws a map: a style beside each GeoTIFF, which QGIS takes up by its name."""

from pathlib import Path
from xml.etree import ElementTree as ET

from fcer.runtime.files import write_text

__all__ = ["write_mask_style", "write_probability_style"]

_RAMP = (
    (0.0, "#ffffe5", 0),
    (0.05, "#fff7bc", 110),
    (0.1, "#fee391", 170),
    (0.25, "#fec44f", 210),
    (0.5, "#fe9929", 230),
    (0.75, "#d95f0e", 255),
    (0.9, "#993404", 255),
    (1.0, "#662506", 255),
)
"""Probability, colour, opacity: what hardly burns lets the map below show through."""


def write_probability_style(path: Path) -> None:
    """The first band in the colours of fire, at the levels that contours are drawn at."""
    renderer = ET.Element("rasterrenderer", type="singlebandpseudocolor", band="1", opacity="1", alphaBand="-1")
    renderer.set("classificationMin", "0")
    renderer.set("classificationMax", "1")
    shader = ET.SubElement(ET.SubElement(renderer, "rastershader"), "colorrampshader")
    shader.attrib.update(colorRampType="INTERPOLATED", classificationMode="1", clip="0", minimumValue="0")
    shader.set("maximumValue", "1")
    for value, colour, opacity in _RAMP:
        item = {"value": f"{value:g}", "color": colour, "alpha": str(opacity), "label": f"{100 * value:g} %"}
        ET.SubElement(shader, "item", item)
    _write(path, renderer)


def write_mask_style(path: Path) -> None:
    """Fire in red; nothing where none is predicted."""
    renderer = ET.Element("rasterrenderer", type="paletted", band="1", opacity="1", alphaBand="-1")
    palette = ET.SubElement(renderer, "colorPalette")
    for value, colour, opacity, label in ((0, "#ffffff", 0, "no fire predicted"), (1, "#b3402a", 255, "fire")):
        entry = {"value": str(value), "color": colour, "alpha": str(opacity), "label": label}
        ET.SubElement(palette, "paletteEntry", entry)
    _write(path, renderer)


def _write(path: Path, renderer: ET.Element) -> None:
    root = ET.Element("qgis", version="3.22.0", styleCategories="AllStyleCategories")
    pipe = ET.SubElement(root, "pipe")
    pipe.append(renderer)
    for tag in ("brightnesscontrast", "huesaturation"):
        ET.SubElement(pipe, tag)
    ET.SubElement(pipe, "rasterresampler", maxOversampling="2")
    text = ET.tostring(root, encoding="unicode")
    write_text(path, f"<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n{text}\n")

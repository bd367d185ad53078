"""Many maps as one layer: a VRT, which holds no pixels of its own but names the maps it shows."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from fcer.data.geotiff import import_rasterio
from fcer.runtime.files import atomic_path

__all__ = ["write_mosaic"]

_DEGREES = 0.00375
"""Of a pixel: about 375 m from south to north, and a round part of a degree, so that all maps share one grid."""


def write_mosaic(path: Path, maps: Sequence[Path]) -> None:
    """Write the VRT of maps in any coordinate systems, on one grid of longitude and latitude; later maps lie on top.

    Each map is warped when it is looked at, by a small VRT of its own in the folder named as the mosaic, without
    interpolation: what is shown is what was predicted. Maps stay where they are, and must be moved along.
    """
    rasterio = import_rasterio()
    warped = [_warp(map_file, path.with_suffix("") / f"{map_file.stem}.vrt") for map_file in maps]
    first_column, first_row = min(one[1] for one in warped), min(one[2] for one in warped)
    columns = max(column + width for _, column, _, width, _ in warped) - first_column
    rows = max(row + height for _, _, row, _, height in warped) - first_row
    root = ET.Element("VRTDataset", rasterXSize=str(columns), rasterYSize=str(rows))
    _add(root, "SRS", rasterio.crs.CRS.from_epsg(4326).to_wkt())
    west, north = first_column * _DEGREES - 180, 90 - first_row * _DEGREES
    _add(root, "GeoTransform", f"{west!r}, {_DEGREES!r}, 0.0, {north!r}, 0.0, {-_DEGREES!r}")
    with rasterio.open(maps[0]) as image:
        descriptions = image.descriptions
    for number, description in enumerate(descriptions, 1):
        band = _add(root, "VRTRasterBand", dataType="Float32", band=str(number))
        _add(band, "Description", description)
        _add(band, "NoDataValue", "nan")
        for file, column, row, width, height in warped:
            source = _add(band, "ComplexSource")
            _add(source, "SourceFilename", f"{path.stem}/{file.name}", relativeToVRT="1")
            _add(source, "SourceBand", str(number))
            size = {"xSize": str(width), "ySize": str(height)}
            _add(source, "SrcRect", xOff="0", yOff="0", **size)
            _add(source, "DstRect", xOff=str(column - first_column), yOff=str(row - first_row), **size)
            _add(source, "NODATA", "nan")
    with atomic_path(path) as partial:
        ET.ElementTree(root).write(partial, encoding="utf-8")


def _warp(map_file: Path, out: Path) -> tuple[Path, int, int, int, int]:
    """The VRT of a map on the grid of degrees: its file, first column and row of that grid, width and height."""
    rasterio = import_rasterio()
    from rasterio.enums import Resampling
    from rasterio.shutil import copy
    from rasterio.vrt import WarpedVRT
    from rasterio.warp import transform_bounds

    with rasterio.open(map_file) as image:
        west, south, east, north = transform_bounds(image.crs, "EPSG:4326", *image.bounds)
        column, row = math.floor((west + 180) / _DEGREES), math.floor((90 - north) / _DEGREES)
        width = math.ceil((east + 180) / _DEGREES) - column
        height = math.ceil((90 - south) / _DEGREES) - row
        transform = rasterio.Affine(_DEGREES, 0, column * _DEGREES - 180, 0, -_DEGREES, 90 - row * _DEGREES)
        grid: dict[str, Any] = {"crs": "EPSG:4326", "transform": transform, "width": width, "height": height}
        with (
            WarpedVRT(image, **grid, resampling=Resampling.nearest, nodata=math.nan) as warped,
            atomic_path(out) as partial,
        ):
            partial.unlink()
            copy(warped, str(partial), driver="VRT")
            root = ET.fromstring(partial.read_text(encoding="utf-8"))
            source = root.find(".//SourceDataset")
            assert source is not None
            source.text, source.attrib["relativeToVRT"] = f"../{map_file.name}", "1"
            ET.ElementTree(root).write(partial, encoding="utf-8")
    return out, column, row, width, height


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child

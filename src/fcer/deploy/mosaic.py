"""Many maps as one layer: a VRT, which holds no pixels of its own but names the maps it shows."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from fcer.data.geotiff import import_rasterio
from fcer.deploy.kml import add_element
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
    add_element(root, "SRS", rasterio.crs.CRS.from_epsg(4326).to_wkt())
    west, north = first_column * _DEGREES - 180, 90 - first_row * _DEGREES
    add_element(root, "GeoTransform", f"{west!r}, {_DEGREES!r}, 0.0, {north!r}, 0.0, {-_DEGREES!r}")
    with rasterio.open(maps[0]) as image:
        descriptions = image.descriptions
    for number, description in enumerate(descriptions, 1):
        band = add_element(root, "VRTRasterBand", dataType="Float32", band=str(number))
        add_element(band, "Description", description)
        add_element(band, "NoDataValue", "nan")
        for file, column, row, width, height in warped:
            source = add_element(band, "ComplexSource")
            add_element(source, "SourceFilename", f"{path.stem}/{file.name}", relativeToVRT="1")
            add_element(source, "SourceBand", str(number))
            size = {"xSize": str(width), "ySize": str(height)}
            add_element(source, "SrcRect", xOff="0", yOff="0", **size)
            add_element(source, "DstRect", xOff=str(column - first_column), yOff=str(row - first_row), **size)
            add_element(source, "NODATA", "nan")
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

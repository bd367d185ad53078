"""What a forecast's GeoTIFF has beside it in a GIS: GeoPackage, KML, mask, styles, and a STAC item of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fcer.data.fire import Place
from fcer.deploy.calibrated import CalibratedMap
from fcer.deploy.cog import NO_DATA, write_cog
from fcer.deploy.fire_map import FireMap
from fcer.deploy.geopackage import write_geopackage
from fcer.deploy.kml import write_kml
from fcer.deploy.mosaic import write_mosaic
from fcer.deploy.outlines import Feature
from fcer.deploy.qml import write_mask_style, write_probability_style
from fcer.deploy.stac import write_stac_item

__all__ = ["Forecast", "write_gis_files", "write_gis_of_all"]


@dataclass(frozen=True)
class Forecast:
    """One predicted fire, with its GeoTIFF written."""

    path: Path
    """Of the GeoTIFF."""
    place: Place | None
    """None where nothing says where on earth it lies."""
    predicted: FireMap
    calibrated: CalibratedMap
    threshold: float
    features: Sequence[Feature]
    about: Mapping[str, Any]
    """As the GeoTIFF's tags."""
    bands: Sequence[str]


def write_gis_files(forecast: Forecast) -> None:
    """Write them; without a place on earth the mask and the styles alone."""
    path, about = forecast.path, forecast.about
    # `.tiff`, so that whoever looks for forecasts by `*.tif` finds forecasts alone
    mask = path.with_name(f"{path.stem}_fire.tiff")
    probability = forecast.calibrated.probability
    fire = np.where(np.isnan(probability), NO_DATA, probability > forecast.threshold).astype(np.uint8)
    tags = {key.upper(): str(value) for key, value in about.items()}
    write_cog(mask, {f"fire (probability above {forecast.threshold:g})": fire}, place=forecast.place, tags=tags)
    write_probability_style(path.with_suffix(".qml"))
    write_mask_style(mask.with_suffix(".qml"))
    if forecast.place is None:
        return
    write_geopackage(path.with_suffix(".gpkg"), forecast.features)
    write_kml(path.with_suffix(".kml"), forecast.features)
    if forecast.predicted.dates and forecast.predicted.predicted:
        named = {"map": path, "mask": mask}
        beside = (
            ("style", ".qml"),
            ("polygons", ".gpkg"),
            ("globe", ".kml"),
            ("geojson", ".geojson"),
            ("look", ".png"),
        )
        named |= {key: path.with_suffix(suffix) for key, suffix in beside if path.with_suffix(suffix).exists()}
        write_stac_item(
            path.with_suffix(".stac.json"),
            named,
            place=forecast.place,
            shape=(probability.shape[0], probability.shape[1]),
            days=(forecast.predicted.dates[-1], forecast.predicted.predicted),
            about=about,
            bands=list(forecast.bands),
        )


def write_gis_of_all(folder: Path, features: Sequence[Feature], maps: Sequence[Path]) -> list[Path]:
    """The polygons of all fires as one GeoPackage and one KML, and their maps as one mosaic; the files written."""
    written = [folder / "all_fires.gpkg", folder / "all_fires.kml", folder / "mosaic.vrt"]
    write_geopackage(written[0], features)
    write_kml(written[1], features)
    write_mosaic(written[2], maps)
    write_probability_style(written[2].with_suffix(".qml"))
    return [*written, written[2].with_suffix(".qml")]

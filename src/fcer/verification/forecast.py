"""A forecast as its GeoTIFF tells it: which day, place and student, what it promised, and the maps themselves."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES
from fcer.data.fire import Place
from fcer.data.geotiff import check_size, import_rasterio, open_raster
from fcer.deploy.cog import is_as_written
from fcer.deploy.ground import ground_of
from fcer.errors import DataError
from fcer.models.expectations import Expectations

__all__ = ["Forecast", "ForecastMaps", "find_maps", "read_forecast"]

_AGAIN = "predict it again with this version of fcer"


class ForecastMaps(NamedTuple):
    """Maps (H, W) of one day; NaN where nothing is known."""

    probability: NDArray[np.float32]
    uncertainty: NDArray[np.float32]
    zone: NDArray[np.float32] | None
    """The largest nominal miss among the zones that hold a pixel, NaN outside of all."""


@dataclass(frozen=True)
class Forecast:
    """One map's header."""

    path: Path
    fire: str
    day: date
    """That the forecast is of."""
    last_input: date
    model: Mapping[str, str]
    """uri, student_key and code_version; of a registered one name and version."""
    calibration: str
    threshold: float
    anchor_px: float
    misses: tuple[float, ...]
    """Nominal ones of its zones, ascending."""
    lacking: tuple[str, ...]
    """Input channels without any value on the latest day."""
    means: Mapping[str, float]
    """Of input channels, standardised."""
    expected: Expectations | None
    synthetic: bool
    """Whether the fire never burnt."""
    place: Place | None
    shape: tuple[int, int]
    pixel_m: tuple[float, float]
    """Height and width."""
    box: tuple[float, float, float, float] | None
    """West, south, east, north in degrees."""

    @property
    def student(self) -> str:
        """The student's key."""
        return self.model["student_key"]

    @property
    def label(self) -> str:
        """The model in words."""
        if "name" in self.model:
            return f"{self.model['name']} {self.model['version']}"
        return f"student {self.student[:12]}"

    @property
    def key(self) -> str:
        """Stands for student, day, fire and grid: the same forecast twice counts once."""
        place = None if self.place is None else [self.place.crs, list(self.place.transform)]
        said = [self.student, str(self.day), self.fire, place, list(self.shape)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def read(self) -> ForecastMaps:
        """The maps themselves."""
        rasterio = import_rasterio()
        with open_raster(self.path) as image:
            named = _bands(image)
            try:
                maps = {name: image.read(band) for name, band in named.items()}
            except rasterio.errors.RasterioError as error:
                raise DataError(f"{self.path}: cut or damaged ({error}); {_AGAIN}") from None
        for name in ("probability", "uncertainty"):
            known = maps[name][~np.isnan(maps[name])]
            if not known.size or known.min() < 0 or known.max() > 1:
                raise DataError(f"{self.path}: its {name} is not between 0 and 1; {_AGAIN}")
        return ForecastMaps(maps["probability"], maps["uncertainty"], maps.get("zone"))


def find_maps(paths: tuple[Path, ...]) -> list[Path]:
    """The GeoTIFFs that were named or lie in the named folders, at any depth."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(one for one in path.rglob("*.tif") if not one.name.startswith("."))
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"{path}: no such file or folder; give --maps what `fcer predict` wrote")
    if not found:
        raise DataError(f"{paths[0]}: no GeoTIFF in it; give --maps a folder that `fcer predict` wrote to")
    return list(dict.fromkeys(found))


def read_forecast(path: Path) -> Forecast:
    """The header of a map; a DataError says why it is no forecast of ours."""
    rasterio = import_rasterio()
    try:
        with open_raster(path) as image:
            check_size(path, image)
            tags = {key.lower(): value for key, value in image.tags().items()}
            shape = (int(image.height), int(image.width))
            place = Place.said(image.crs.to_string() if image.crs else None, tuple(image.transform)[:6])
            box = _box(image)
            bands = _bands(image)
            whole = is_as_written(image)
    except rasterio.errors.RasterioError as error:
        raise DataError(f"{path}: cannot be read as a GeoTIFF ({error}); {_AGAIN}") from None
    if not whole:
        raise DataError(f"{path}: what it holds is not what was written (by its checksum); {_AGAIN}")
    # A student's key names its record, on disk and in MLflow
    if not re.fullmatch(r"[\w .-]+", tags.get("model_student_key", "")) or "predicted_date" not in tags:
        raise DataError(f"{path}: does not say which student predicted which day; give maps that `fcer predict` wrote")
    if not {"probability", "uncertainty"} <= bands.keys():
        raise DataError(f"{path}: has no bands of fire probability and uncertainty; {_AGAIN}")
    if "anchor_px" not in tags:
        raise DataError(f"{path}: written before forecasts could be verified; {_AGAIN}")
    ground = ground_of(place, *shape)
    try:
        values = _values(tags)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: its tags cannot be read ({error}); {_AGAIN}") from None
    return Forecast(
        path=path,
        place=place,
        shape=shape,
        pixel_m=(ground.height_m, ground.width_m) if ground else (PIXEL_METRES, PIXEL_METRES),
        box=box,
        **values,
    )


def _values(tags: Mapping[str, str]) -> dict[str, Any]:
    """What the tags say."""
    if tags["predicted_date"] == "unknown":
        raise ValueError("it does not say its day, since the fire's file had no dates")
    misses = sorted(float(key.removeprefix("zone_")) for key in tags if key.startswith("zone_"))
    threshold, anchor_px = float(tags["threshold"]), float(tags["anchor_px"])
    if not 0 <= threshold <= 1 or not 0 <= anchor_px < math.inf or any(not 0 < miss < 1 for miss in misses):
        raise ValueError("threshold, anchor or zones are impossible")
    means = {str(name): float(mean) for name, mean in json.loads(tags["input_means"]).items()}
    lacking = tags["input_lacking"]
    return {
        "fire": tags["fire"],
        "day": date.fromisoformat(tags["predicted_date"]),
        "last_input": date.fromisoformat(tags["input_dates"].split()[-1]),
        "model": {key.removeprefix("model_"): value for key, value in tags.items() if key.startswith("model_")},
        "calibration": tags["calibration_id"],
        "threshold": threshold,
        "anchor_px": anchor_px,
        "misses": tuple(misses),
        "lacking": () if lacking == "none" else tuple(lacking.split(", ")),
        "means": means,
        "synthetic": "synthetic" in tags,
        "expected": Expectations.from_text(tags["expected"]) if "expected" in tags else None,
    }


def _bands(image: Any) -> dict[str, int]:
    """Which band is which, by its description."""
    known = {"fire probability": "probability", "uncertainty": "uncertainty", "zone": "zone"}
    found: dict[str, int] = {}
    for band, text in enumerate(image.descriptions, start=1):
        for word, name in known.items():
            if text and (text.startswith(word) or text == f"calibrated {word}"):
                found.setdefault(name, band)
    return found


def _box(image: Any) -> tuple[float, float, float, float] | None:
    """Where on earth the image lies."""
    if not image.crs:
        return None
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import RasterioError
    from rasterio.warp import transform_bounds

    try:
        west, south, east, north = map(float, transform_bounds(image.crs, "EPSG:4326", *image.bounds))
    except (RasterioError, CPLE_BaseError, ValueError):
        return None
    return (west, south, east, north) if all(map(math.isfinite, (west, south, east, north))) else None

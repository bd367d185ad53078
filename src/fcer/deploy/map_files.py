"""The files of one predicted fire: its GeoTIFF, and where they are asked for a quick-look and outlines."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fcer import __version__
from fcer.core.arrays import BoolArray
from fcer.core.regions import PIXEL_METRES
from fcer.core.watch_zone import watch_zone
from fcer.data.fire import Fire
from fcer.deploy.cog import write_cog
from fcer.deploy.fire_map import FireMap, predict_fire
from fcer.deploy.ground import Ground, ground_of
from fcer.deploy.outlines import outlines, write_geojson
from fcer.errors import DataError, FcerWarning
from fcer.models.student_files import LoadedStudent

__all__ = ["MapFiles"]


@dataclass(frozen=True)
class MapFiles:
    """How fires become files: by which student, and what is written."""

    loaded: LoadedStudent
    identity: Mapping[str, str]
    """Of the student, as `find_student` tells it."""
    threshold: float
    anchor_px: float
    watch_quantile: float
    png: bool
    geojson: bool

    def write(self, fire: Fire, path: Path) -> dict[str, Any]:
        """Predict a fire and write its files, named as the map at `path`; its row of the table of predictions."""
        if path.resolve() in {file.resolve() for file in fire.files()}:
            raise DataError(f"{path}: is a file of the fire itself; choose another --out")
        predicted = predict_fire(self.loaded, fire)
        ground = ground_of(fire.place, fire.height, fire.width)
        self._warn(fire, predicted, ground)
        mask = predicted.fire(self.threshold)
        known = ~np.isnan(predicted.probability)
        about = self._about(fire, predicted)
        bands = {
            "fire probability": predicted.probability,
            "uncertainty": predicted.uncertainty,
            f"fire (probability above {self.threshold:g})": np.where(known, mask, np.nan).astype(np.float32),
        }
        write_cog(path, bands, place=fire.place, tags={key.upper(): str(value) for key, value in about.items()})
        if self.png or self.geojson:
            watched = self._watched(predicted)
        if self.geojson and ground is not None:
            self._write_outlines(fire, predicted, watched, ground, about, path.with_suffix(".geojson"))
        if self.png:
            self._draw(fire, predicted, watched, ground, path.with_suffix(".png"))
        return {
            "fire": fire.name,
            "date": about["predicted_date"],
            "fire_pixels": int(mask.sum()),
            "area_km2": "" if ground is None else round(int(mask.sum()) * ground.area_m2 / 1e6, 4),
            "mean_uncertainty": round(float(np.nanmean(predicted.uncertainty)), 6),
            "max_uncertainty": round(float(np.nanmax(predicted.uncertainty)), 6),
            "file": str(path),
        }

    def _warn(self, fire: Fire, predicted: FireMap, ground: Ground | None) -> None:
        if ground is None:
            lost = (
                "its coordinate system is none of the earth's"
                if fire.place and fire.place.crs
                else "it has no coordinate system"
            )
            without = " and no GeoJSON is written" if self.geojson else ""
            sentence = f"{fire.path}: nothing says where on earth it lies ({lost}): its map has pixels alone{without}"
            warnings.warn(sentence, FcerWarning, stacklevel=3)
        if predicted.dates is None:
            sentence = f"{fire.path}: it does not say the dates of its days; they are taken to follow one another"
            warnings.warn(sentence, FcerWarning, stacklevel=3)

    def _about(self, fire: Fire, predicted: FireMap) -> dict[str, Any]:
        """What a map should never be without."""
        return {
            "fire": fire.name,
            "predicted_date": str(predicted.predicted or "unknown"),
            "input_dates": " ".join(map(str, predicted.dates)) if predicted.dates else "unknown",
            "threshold": self.threshold,
            "anchor_px": self.anchor_px,
            **{f"model_{key}": value for key, value in self.identity.items()},
            "fcer_version": __version__,
        }

    def _watched(self, predicted: FireMap) -> BoolArray:
        return watch_zone(
            predicted.fire(self.threshold),
            predicted.uncertainty,
            anchor=self.anchor_px,
            quantile=self.watch_quantile,
        )

    def _write_outlines(
        self, fire: Fire, predicted: FireMap, watched: BoolArray, ground: Ground, about: Mapping[str, Any], path: Path
    ) -> None:
        assert fire.place is not None
        means = {"mean_probability": predicted.probability, "mean_uncertainty": predicted.uncertainty}
        perimeter, zone = ({"kind": kind, **about} for kind in ("perimeter", "watch_zone"))
        zone["watch_quantile"] = self.watch_quantile
        weighted = {**means, "weight": predicted.uncertainty}
        features = outlines(predicted.fire(self.threshold), fire.place, ground, means, perimeter)
        write_geojson(path, features + outlines(watched, fire.place, ground, weighted, zone))

    def _draw(self, fire: Fire, predicted: FireMap, watched: BoolArray, ground: Ground | None, path: Path) -> None:
        from fcer.deploy.quicklook import QuickLook, write_quicklook  # few want pictures, which need matplotlib

        model = f"{self.identity['name']} {self.identity['version']}" if "name" in self.identity else "a student"
        last = f" to {predicted.dates[-1]}" if predicted.dates else ""
        look = QuickLook(
            title=f"{fire.name}, {predicted.predicted or 'the day after its last'}",
            note=f"predicted by {model} from {self.loaded.student.backbone.days} days{last}",
            probability=predicted.probability,
            uncertainty=predicted.uncertainty,
            today=predicted.today,
            fire=predicted.fire(self.threshold),
            watch=watched,
            pixel_m=(ground.width_m, ground.height_m) if ground else (PIXEL_METRES, PIXEL_METRES),
        )
        write_quicklook(path, look)

"""The files of one predicted fire: its GeoTIFF, and where they are asked for a quick-look and outlines."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer import __version__
from fcer.core.arrays import BoolArray
from fcer.core.regions import PIXEL_METRES
from fcer.data.fire import Fire
from fcer.deploy.assets import Asset, assets_at_risk, write_rows
from fcer.deploy.calibrated import CalibratedMap, calibrate_map, contours
from fcer.deploy.cog import write_cog
from fcer.deploy.fire_map import FireMap, predict_fire
from fcer.deploy.gis_files import Forecast, write_gis_files
from fcer.deploy.ground import Ground, ground_of
from fcer.deploy.outlines import Feature, outlines, write_geojson
from fcer.errors import DataError, FcerWarning
from fcer.models.calibration_files import Calibration, calibration_id
from fcer.models.precision import FP32
from fcer.models.student_files import LoadedStudent

__all__ = ["MapFiles"]


@dataclass(frozen=True)
class MapFiles:
    """How fires become files: by which student, and what is written."""

    loaded: LoadedStudent
    identity: Mapping[str, str]
    """Of the student, as `find_student` tells it."""
    calibration: Calibration | None
    """Of the student; none: probabilities are as it says, and there are no zones."""
    threshold: float
    png: bool
    geojson: bool
    gis: bool = False
    """Whether GeoPackage, KML, mask, styles and a STAC item are written beside."""
    assets: tuple[Asset, ...] | None = None
    """Of an agency: with them, a table of those at risk is written beside."""
    features: list[Feature] = field(default_factory=list)
    """Of all fires written so far."""

    def write(self, fire: Fire, path: Path) -> dict[str, Any]:
        """Predict a fire and write its files, named as the map at `path`; its row of the table of predictions."""
        if path.resolve() in {file.resolve() for file in fire.files()}:
            raise DataError(f"{path}: is a file of the fire itself; choose another --out")
        predicted = predict_fire(self.loaded, fire)
        ground = ground_of(fire.place, fire.height, fire.width)
        self._warn(fire, predicted, ground)
        calibrated = self._calibrated(predicted, ground)
        mask = calibrated.probability > self.threshold
        about = self._about(fire, predicted, calibrated)
        write_cog(
            path,
            self._bands(predicted, calibrated),
            place=fire.place,
            tags={key.upper(): str(value) for key, value in {**about, **self._promised(predicted)}.items()},
        )
        features: list[Feature] = []
        if ground is not None:
            features = self._outlines(fire, predicted, calibrated, ground, about)
            self.features.extend(features)
            if self.geojson:
                write_geojson(path.with_suffix(".geojson"), features)
        if self.png:
            self._draw(fire, predicted, calibrated, ground, path.with_suffix(".png"))
        if self.gis:
            place = fire.place if ground else None
            bands = list(self._bands(predicted, calibrated))
            write_gis_files(Forecast(path, place, predicted, calibrated, self.threshold, features, about, bands))
        at_risk = self._at_risk(fire, predicted, calibrated, ground)
        if at_risk:
            write_rows(path.with_suffix(".assets.csv"), at_risk)
        return {
            "fire": fire.name,
            "date": about["predicted_date"],
            "fire_pixels": int(mask.sum()),
            "area_km2": "" if ground is None else round(int(mask.sum()) * ground.area_m2 / 1e6, 4),
            "mean_uncertainty": round(float(np.nanmean(predicted.uncertainty)), 6),
            "max_uncertainty": round(float(np.nanmax(predicted.uncertainty)), 6),
            **{f"zone_{zone.rule.miss:g}_km2": round(zone.area_km2, 4) for zone in calibrated.zones},
            **({"assets_at_risk": len(at_risk)} if self.assets is not None else {}),
            "file": str(path),
        }

    def _at_risk(
        self, fire: Fire, predicted: FireMap, calibrated: CalibratedMap, ground: Ground | None
    ) -> list[dict[str, Any]]:
        """The assets that the map reaches."""
        if self.assets is None or ground is None or fire.place is None:
            return []
        rows = assets_at_risk(self.assets, fire.place, predicted, calibrated)
        synthetic = {"synthetic": "yes"} if fire.never_burnt else {}
        return [{"fire": fire.name, "date": str(predicted.predicted or "unknown"), **synthetic, **row} for row in rows]

    def _calibrated(self, predicted: FireMap, ground: Ground | None) -> CalibratedMap:
        if self.calibration is None:
            return CalibratedMap(predicted.probability, ())
        pixel = (ground.height_m, ground.width_m) if ground else (PIXEL_METRES, PIXEL_METRES)
        return calibrate_map(predicted.probability, predicted.uncertainty, self.calibration, pixel_m=pixel)

    def _bands(self, predicted: FireMap, calibrated: CalibratedMap) -> dict[str, NDArray[np.float32]]:
        known = ~np.isnan(calibrated.probability)
        fire = np.where(known, calibrated.probability > self.threshold, np.nan).astype(np.float32)
        bands = {
            f"{'calibrated ' if self.calibration else ''}fire probability": calibrated.probability,
            "uncertainty": predicted.uncertainty,
            f"fire (probability above {self.threshold:g})": fire,
        }
        if calibrated.zones:
            innermost = calibrated.innermost
            bands["zone (expected miss outside at most)"] = np.where(innermost > 0, innermost, np.nan)
        return bands

    def _warn(self, fire: Fire, predicted: FireMap, ground: Ground | None) -> None:
        if ground is None:
            lost = (
                "its coordinate system is not one of the earth"
                if fire.place and fire.place.crs
                else "it has no coordinate system"
            )
            without = " and no GeoJSON is written" if self.geojson else ""
            without += " (for a GIS: mask and styles alone)" if self.gis else ""
            sentence = f"{fire.path}: nothing says where on earth it lies ({lost}): its map has pixels alone{without}"
            warnings.warn(sentence, FcerWarning, stacklevel=3)
        if predicted.dates is None:
            sentence = f"{fire.path}: it does not say the dates of its days; they are taken to follow one another"
            warnings.warn(sentence, FcerWarning, stacklevel=3)

    def _about(self, fire: Fire, predicted: FireMap, calibrated: CalibratedMap) -> dict[str, Any]:
        """What a map should never be without."""
        zones = {f"zone_{zone.rule.miss:g}": zone.words for zone in calibrated.zones}
        return {
            **({"synthetic": "yes: this fire never burnt"} if fire.never_burnt else {}),
            "fire": fire.name,
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "predicted_date": str(predicted.predicted or "unknown"),
            "input_dates": " ".join(map(str, predicted.dates)) if predicted.dates else "unknown",
            "threshold": self.threshold,
            **({"precision": self.loaded.precision} if self.loaded.precision != FP32 else {}),
            "calibration": self.calibration.recalibration.kind if self.calibration else "none",
            **zones,
            **{f"model_{key}": value for key, value in self.identity.items()},
            "fcer_version": __version__,
        }

    def _promised(self, predicted: FireMap) -> dict[str, str]:
        """What `fcer verify` holds the map to: its numbers are for machines, and stand in the GeoTIFF alone."""
        expected = self.calibration.expected if self.calibration else None
        return {
            "anchor_px": repr(self.loaded.head.anchor_px),
            "calibration_id": calibration_id(self.calibration) if self.calibration else "none",
            "input_lacking": ", ".join(predicted.summary.lacking) or "none",
            "input_means": json.dumps({name: round(mean, 4) for name, mean in predicted.summary.means.items()}),
            **({"expected": json.dumps(expected.to_dict())} if expected else {}),
        }

    def _outlines(
        self, fire: Fire, predicted: FireMap, calibrated: CalibratedMap, ground: Ground, about: Mapping[str, Any]
    ) -> list[Feature]:
        """The perimeter, the zones and the contours of the calibrated probability."""
        assert fire.place is not None
        means = {"mean_probability": calibrated.probability, "mean_uncertainty": predicted.uncertainty}
        short = {key: value for key, value in about.items() if not key.startswith("zone_")}
        parts: list[tuple[BoolArray, dict[str, Any]]] = [
            (calibrated.probability > self.threshold, {"kind": "perimeter"})
        ]
        parts += [(zone.mask, {"kind": "zone", **zone.properties}) for zone in calibrated.zones]
        if self.calibration:
            levels = contours(calibrated.probability).items()
            parts += [(mask, {"kind": "contour", "probability_at_least": level}) for level, mask in levels]
        found = (outlines(mask, fire.place, ground, means, {**kind, **short}) for mask, kind in parts)
        return [feature for features in found for feature in features]

    def _draw(
        self, fire: Fire, predicted: FireMap, calibrated: CalibratedMap, ground: Ground | None, path: Path
    ) -> None:
        from fcer.deploy.quicklook import QuickLook, write_quicklook  # few want pictures, which need matplotlib

        model = f"{self.identity['name']} {self.identity['version']}" if "name" in self.identity else "a student"
        last = f" to {predicted.dates[-1]}" if predicted.dates else ""
        days = self.loaded.student.backbone.days
        synthetic = " (SYNTHETIC)" if fire.never_burnt else ""
        # the smallest zone that is not the whole image
        bounded = [zone for zone in calibrated.zones if np.isfinite(zone.rule.level)]
        look = QuickLook(
            title=f"{fire.name}{synthetic}, {predicted.predicted or 'the day after its last'}",
            note=f"predicted by {model} from {days} day{'s' if days > 1 else ''}{last}",
            probability=calibrated.probability,
            uncertainty=predicted.uncertainty,
            today=predicted.today,
            fire=calibrated.probability > self.threshold,
            zone=bounded[-1] if bounded else None,
            pixel_m=(ground.width_m, ground.height_m) if ground else (PIXEL_METRES, PIXEL_METRES),
        )
        write_quicklook(path, look)

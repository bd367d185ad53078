"""Forecasts of a tiny student, and a season of synthetic fires that they can be verified against."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from fcer.core.recalibration import NONE
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.data.fire import Place
from fcer.deploy.cog import write_cog
from fcer.models.calibration_files import Calibration
from fcer.models.expectations import Expectations

EXPECTED = Expectations(
    scores={"nll_skill": (-0.9, -0.5, 0.1, 0.3), "auroc": (0.1, 0.3, 0.5, 0.7)},
    ranges={"NDVI": (-3.0, 3.0)},
    lacking=0.05,
    threshold=0.5,
    fires=12,
)


def calibration_of(student: str, level: float = 0.35, expected: Expectations | None = EXPECTED) -> Calibration:
    """One that changes no probability, with one zone: where the probability is at least `level`."""
    rule = ZoneRule(ZoneFamily("threshold"), level, 0.2, 0.19, 9, 1, area_km2=40.0, area_2n_km2=30.0)
    return Calibration(student, NONE, NONE, (rule,), 3.0, ("a", "b"), True, "0", expected)


def place_at(left: float = 300_000.0, top: float = 4_500_000.0) -> Place:
    """In UTM zone 10, whose pixels of 375 m detections are painted on."""
    return Place("EPSG:32610", (375.0, 0.0, left, 0.0, -375.0, top))


def tags_of(day: date, fire: str = "fire_1", student: str = "key", **more: str) -> dict[str, str]:
    """As `fcer predict` writes them."""
    return {
        "FIRE": fire,
        "PREDICTED_DATE": str(day),
        "INPUT_DATES": str(date.fromordinal(day.toordinal() - 1)),
        "THRESHOLD": "0.5",
        "CALIBRATION": "none",
        "CALIBRATION_ID": "c1",
        "ZONE_0.2": "words",
        "MODEL_URI": "somewhere",
        "MODEL_STUDENT_KEY": student,
        "ANCHOR_PX": "4.0",
        "INPUT_LACKING": "none",
        "INPUT_MEANS": '{"NDVI": 0.1}',
        **more,
    }


def write_forecast(
    path: Path, day: date, *, place: Place | None = None, seed: int = 0, side: int = 32, **tags: Any
) -> Path:
    """A random map with a zone in its middle."""
    rng = np.random.default_rng(seed)
    probability, uncertainty = rng.random((2, side, side)).astype(np.float32)
    zone = np.full((side, side), np.nan, np.float32)
    zone[8:24, 8:24] = 0.2
    bands = {"fire probability": probability, "uncertainty": uncertainty, "zone (expected miss outside at most)": zone}
    write_cog(path, bands, place=place or place_at(), tags=tags_of(day, **tags))
    return path

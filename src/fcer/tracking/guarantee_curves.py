"""Guaranteed zones and calibrated probabilities as metrics, so that MLflow's charts show what a promise costs."""

import math
from collections.abc import Iterator

import pandas as pd

from fcer.evaluation.results import Results

__all__ = ["guarantee_curves"]

_ZONE = {"realised_miss": "miss", "area_km2": "area_km2", "times_burnt": "times_burnt"}
_LOSSES = ("brier", "nll", "brier_skill", "nll_skill", "ece")


def guarantee_curves(results: Results, method: str, year: int | None = None) -> Iterator[tuple[str, float, int]]:
    """A method's metrics in one year, or as means over years: name, value, step.

    `zone/miss`, `zone/area_km2` and `zone/times_burnt` (`zone_margin/`, `zone_widened/` of the other families) have the
    nominal miss in percent as step; `calibrated/brier` and so on the radius in px, -1 for the full image.
    """
    if results.zones is not None:
        for (family, miss), rows in _of(results.zones, method, year).groupby(["family", "nominal_miss"], sort=False):
            group = "zone" if family == "threshold" else f"zone_{family}"
            for column, name in _ZONE.items():
                yield from _defined(f"{group}/{name}", rows[column].mean(), round(100 * miss))
    if results.calibration is not None:
        for radius, rows in _of(results.calibration, method, year).groupby("radius_px"):
            if radius % 1 == 0 or math.isinf(radius):
                step = -1 if math.isinf(radius) else int(radius)
                for name in _LOSSES:
                    yield from _defined(f"calibrated/{name}", rows[f"{name}_calibrated"].mean(), step)


def _of(table: pd.DataFrame, method: str, year: int | None) -> pd.DataFrame:
    """Those that all methods have, calibrated by other years' fires; where there are none, by validation fires."""
    rows = table[(table["method"] == method) & ((table["year"] == year) if year is not None else True)]
    cross = rows[rows["fitted"] == "cross"]
    return cross if len(cross) else rows


def _defined(name: str, value: float, step: int) -> Iterator[tuple[str, float, int]]:
    if not math.isnan(value):
        yield name, float(value), step

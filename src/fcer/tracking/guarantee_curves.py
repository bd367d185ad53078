"""Guaranteed zones and calibrated probabilities as metrics, so that MLflow's charts show what a promise costs."""

import math
from collections.abc import Iterator

import pandas as pd

from fcer.evaluation.results import Results
from fcer.evaluation.zone_verdict import preferred

__all__ = ["guarantee_curves"]

_ZONE = {"realised_miss": "miss", "area_km2": "area_km2", "times_burnt": "times_burnt"}
_LOSSES = ("brier", "nll", "brier_skill", "nll_skill", "ece")


def guarantee_curves(results: Results, method: str, year: int | None = None) -> Iterator[tuple[str, float, int]]:
    """A method's metrics in one year, or as means over years: name, value, step.

    `zone/miss`, `zone/area_km2` and `zone/times_burnt` (`zone_margin/`, `zone_widened/` of the other families) have the
    nominal miss in percent as step; `calibrated/brier` and so on the radius in px, -1 for the full image.
    """
    if results.zones is not None:
        means = _of(results.zones, method, year).groupby(["family", "nominal_miss"], sort=False)[list(_ZONE)].mean()
        for row in means.reset_index().to_dict("records"):
            group = "zone" if row["family"] == "threshold" else f"zone_{row['family']}"
            for column, name in _ZONE.items():
                yield from _defined(f"{group}/{name}", row[column], round(100 * row["nominal_miss"]))
    if results.calibration is not None:
        columns = [f"{name}_calibrated" for name in _LOSSES]
        losses = _of(results.calibration, method, year).groupby("radius_px")[columns].mean()
        for row in losses.reset_index().to_dict("records"):
            radius = float(row["radius_px"])
            if math.isinf(radius) or radius % 1 == 0:
                for name in _LOSSES:
                    step = -1 if math.isinf(radius) else int(radius)
                    yield from _defined(f"calibrated/{name}", row[f"{name}_calibrated"], step)


def _of(table: pd.DataFrame, method: str, year: int | None) -> pd.DataFrame:
    """Those that all methods have, calibrated by other years' fires; where there are none, by validation fires."""
    rows = table[(table["method"] == method) & ((table["year"] == year) if year is not None else True)]
    return preferred(rows)


def _defined(name: str, value: float, step: int) -> Iterator[tuple[str, float, int]]:
    if not math.isnan(value):
        yield name, float(value), step

"""Tidy tables from what was measured on each year."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fcer.core.corp import BrierParts
from fcer.core.region_totals import MethodRegions, OwnProbability
from fcer.core.regions import PIXEL_METRES
from fcer.core.statistics import WilcoxonResult, wilcoxon_test
from fcer.errors import UndefinedMetricWarning
from fcer.evaluation.comparison import RANKING_METRICS
from fcer.evaluation.measured_year import MeasuredYear

__all__ = [
    "anchor_table",
    "corp_table",
    "own_errors_table",
    "per_image_table",
    "reliability_table",
    "risk_coverage_table",
    "segmentation_table",
    "sensitivity_table",
    "sweep_table",
    "thresholds_table",
]

_SENSITIVITY_COLUMNS = [
    *("anchor", "radius_px", "radius_m", "metric", "a", "b", "a_score", "b_score"),
    *WilcoxonResult._fields,
]


def segmentation_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year and method, over all pixels of all images; controls' are empty."""
    return pd.DataFrame(
        {"year": year.maps.year, "method": method, **year.segmentation_row(method)}
        for year in years
        for method in year.regions
    )


def sweep_table(years: Sequence[MeasuredYear], radii: Sequence[float]) -> pd.DataFrame:
    """One row per year, method and radius."""
    return pd.concat([_curve_rows(*entry, radii) for entry in _regions(years)], ignore_index=True)


def anchor_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year and method, with the calibration error in bins of equal mass and Brier's parts besides."""
    rows = []
    for year in years:
        for method, regions in year.regions.items():
            own = regions.own
            parts = BrierParts(*[np.nan] * 3) if own is None else own.brier_parts
            more = {"ece_mass": np.nan if own is None else own.reliability["mass"].error, **parts._asdict()}
            rows.append(_curve_rows(year.maps.year, method, regions, [year.anchor_px]).assign(**more))
    return pd.concat(rows, ignore_index=True)


def per_image_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per fire image and method, at the anchor."""
    frames = []
    for year in years:
        index = np.flatnonzero(year.on_fire)
        fire_id, date = ("" if label is None else label[index] for label in (year.maps.fire_id, year.maps.date))
        for method, regions in year.regions.items():
            scores = {name: column[:, 0] for name, column in regions.scores._asdict().items()}
            names = {"year": year.maps.year, "index": index, "fire_id": fire_id, "method": method}
            frames.append(pd.DataFrame({**names, **scores, "date": date}))
    return pd.concat(frames, ignore_index=True)


def reliability_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method, binning and bin, at the anchor; none of controls."""
    return _stacked(
        (year, method, {"binning": binning, **curve._asdict()})
        for year, method, own in _owners(years)
        for binning, curve in own.reliability.items()
    )


def corp_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method and stretch of probabilities with one fire rate, at the anchor; none of controls."""
    return _stacked((year, method, own.corp._asdict()) for year, method, own in _owners(years))


def own_errors_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year and method, at the anchor: each method held to the errors of its own probability."""
    return pd.DataFrame(
        {"year": year, "method": method, **own.errors._asdict()} for year, method, own in _owners(years)
    )


def risk_coverage_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method and coverage, at the anchor."""
    return _stacked((year, method, regions.risk_coverage._asdict()) for year, method, regions in _regions(years))


def thresholds_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method and threshold, at the anchor: how the ranking hangs on what counts as an error."""
    return _stacked((year, method, regions.thresholds._asdict()) for year, method, regions in _regions(years))


def sensitivity_table(years: Sequence[MeasuredYear], pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """The pooled comparison by image at each named anchor; `a_score` and `b_score` are means over years.

    So is the radius, where years have anchors of their own.
    """
    radii = {name: float(np.mean([year.anchors[name] for year in years])) for name in years[0].anchors}
    with warnings.catch_warnings():
        # at an anchor that nobody asked for, what is undefined is NaN and no news
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        rows = [
            {
                **{"anchor": name, "radius_px": radius, "radius_m": radius * PIXEL_METRES, "metric": metric},
                **{"a": a, "b": b, **_compared(years, column, name, metric, a, b)},
            }
            for column, (name, radius) in enumerate(radii.items())
            for a, b in pairs
            for metric in RANKING_METRICS
        ]
    return pd.DataFrame(rows, columns=_SENSITIVITY_COLUMNS)


def _compared(years: Sequence[MeasuredYear], column: int, anchor: str, metric: str, a: str, b: str) -> dict[str, float]:
    images, scores = [], []
    for method in (a, b):
        images.append(np.concatenate([getattr(year.regions[method].scores, metric)[:, column] for year in years]))
        curves = [(year.regions[method].curve, year.anchors[anchor]) for year in years]
        scores.append(np.mean([float(getattr(c, metric)[np.flatnonzero(c.radius_px == px)[0]]) for c, px in curves]))
    return {"a_score": scores[0], "b_score": scores[1], **wilcoxon_test(*images)._asdict()}


def _regions(years: Sequence[MeasuredYear]) -> Iterator[tuple[int, str, MethodRegions]]:
    for year in years:
        for method, regions in year.regions.items():
            yield year.maps.year, method, regions


def _owners(years: Sequence[MeasuredYear]) -> Iterator[tuple[int, str, OwnProbability]]:
    return ((year, method, regions.own) for year, method, regions in _regions(years) if regions.own is not None)


def _stacked(parts: Iterable[tuple[int, str, Mapping[str, Any]]]) -> pd.DataFrame:
    """Tables one below the other, each under its year and method."""
    frames = [pd.DataFrame({"year": year, "method": method, **columns}) for year, method, columns in parts]
    return pd.concat(frames, ignore_index=True)


def _curve_rows(year: int, method: str, regions: MethodRegions, radii: Sequence[float]) -> pd.DataFrame:
    curve = pd.DataFrame(regions.curve._asdict()).set_index("radius_px", drop=False).loc[list(radii)]
    curve.insert(0, "year", year)
    curve.insert(1, "method", method)
    return curve.reset_index(drop=True)

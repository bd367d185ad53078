"""Tidy tables from what was measured on each year."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fcer.core.regions import PIXEL_METRES
from fcer.core.segmentation import f1_score, iou_score, precision_score, recall_score
from fcer.core.statistics import WilcoxonResult, wilcoxon_test
from fcer.core.sweep import SweepCurve
from fcer.evaluation.comparison import RANKING_METRICS
from fcer.evaluation.year import Fires, MethodRegions, MethodSegmentation, replicate_segmentation
from fcer.maps.predicted_maps import PredictedMaps

__all__ = [
    "MeasuredYear",
    "anchor_table",
    "own_errors_table",
    "per_image_table",
    "reliability_table",
    "risk_coverage_table",
    "segmentation_table",
    "sensitivity_table",
    "sweep_table",
]

_SENSITIVITY_COLUMNS = [
    *("anchor", "radius_px", "radius_m", "metric", "a", "b", "a_score", "b_score"),
    *WilcoxonResult._fields,
]


@dataclass(frozen=True)
class MeasuredYear:
    """All that was measured on one year, by method."""

    maps: PredictedMaps
    fires: Fires
    segmentation: Mapping[str, MethodSegmentation]
    regions: Mapping[str, MethodRegions]

    @property
    def replicates(self) -> dict[str, dict[str, Any]]:
        """Each metric of each method for each draw of fires."""
        return {
            method: {**replicate_segmentation(self.segmentation[method], self.fires), **regions.replicates}
            for method, regions in self.regions.items()
        }


def segmentation_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year and method, over all pixels of all images."""
    rows = []
    for year in years:
        for method, found in year.segmentation.items():
            counts = found.confusion
            hausdorff95 = found.surface.hausdorff95
            defined = hausdorff95[~np.isnan(hausdorff95)]
            rows.append(
                {
                    "year": year.maps.year,
                    "method": method,
                    "ap": found.ap,
                    "precision": precision_score(counts),
                    "recall": recall_score(counts),
                    "asd_m": found.mean_asd * PIXEL_METRES,
                    "fire_images": found.missed.size,
                    "missed": int(found.missed.sum()),
                    "iou": iou_score(counts),
                    "f1": f1_score(counts),
                    "hausdorff95_m": defined.mean() * PIXEL_METRES if defined.size else np.nan,
                }
            )
    return pd.DataFrame(rows)


def sweep_table(years: Sequence[MeasuredYear], radii: Sequence[float]) -> pd.DataFrame:
    """One row per year, method and radius."""
    return pd.concat([_curve_rows(*entry, radii) for entry in _regions(years)], ignore_index=True)


def anchor_table(years: Sequence[MeasuredYear], anchor: float) -> pd.DataFrame:
    """One row per year and method, with the calibration error in bins of equal mass besides."""
    rows = [_curve_rows(*entry, [anchor]).assign(ece_mass=entry[2].ece_mass) for entry in _regions(years)]
    return pd.concat(rows, ignore_index=True)


def per_image_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per fire image and method, at the anchor."""
    frames = []
    for year in years:
        index = np.flatnonzero(year.fires.on_fire)
        fire_id, date = ("" if label is None else label[index] for label in (year.maps.fire_id, year.maps.date))
        for method, regions in year.regions.items():
            scores = {name: column[:, 0] for name, column in regions.scores._asdict().items()}
            names = {"year": year.maps.year, "index": index, "fire_id": fire_id, "method": method}
            frames.append(pd.DataFrame({**names, **scores, "date": date}))
    return pd.concat(frames, ignore_index=True)


def reliability_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method, binning and bin, at the anchor."""
    frames = [
        pd.DataFrame({"year": year, "method": method, "binning": binning, **curve._asdict()})
        for year, method, regions in _regions(years)
        for binning, curve in regions.reliability.items()
    ]
    return pd.concat(frames, ignore_index=True)


def own_errors_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year and method, at the anchor: each method held to the errors of its own probability."""
    rows = [
        {"year": year, "method": method, **regions.own_errors._asdict()} for year, method, regions in _regions(years)
    ]
    return pd.DataFrame(rows)


def risk_coverage_table(years: Sequence[MeasuredYear]) -> pd.DataFrame:
    """One row per year, method and coverage, at the anchor."""
    frames = [
        pd.DataFrame({"year": year, "method": method, **regions.risk_coverage._asdict()})
        for year, method, regions in _regions(years)
    ]
    return pd.concat(frames, ignore_index=True)


def sensitivity_table(
    years: Sequence[MeasuredYear], anchors: Mapping[str, float], pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """The pooled comparison by image at each named anchor; `a_score` and `b_score` are means over years."""
    rows = []
    for column, (name, radius) in enumerate(anchors.items()):
        for a, b in pairs:
            for metric in RANKING_METRICS:
                ours, theirs = (
                    np.concatenate([getattr(year.regions[m].scores, metric)[:, column] for year in years])
                    for m in (a, b)
                )
                scores = [np.mean([_at(year.regions[m].curve, radius, metric) for year in years]) for m in (a, b)]
                rows.append(
                    {
                        "anchor": name,
                        "radius_px": radius,
                        "radius_m": radius * PIXEL_METRES,
                        "metric": metric,
                        "a": a,
                        "b": b,
                        "a_score": scores[0],
                        "b_score": scores[1],
                        **wilcoxon_test(ours, theirs)._asdict(),
                    }
                )
    return pd.DataFrame(rows, columns=_SENSITIVITY_COLUMNS)


def _regions(years: Sequence[MeasuredYear]) -> Iterator[tuple[int, str, MethodRegions]]:
    for year in years:
        for method, regions in year.regions.items():
            yield year.maps.year, method, regions


def _curve_rows(year: int, method: str, regions: MethodRegions, radii: Sequence[float]) -> pd.DataFrame:
    curve = pd.DataFrame(regions.curve._asdict()).set_index("radius_px", drop=False).loc[list(radii)]
    curve.insert(0, "year", year)
    curve.insert(1, "method", method)
    return curve.reset_index(drop=True)


def _at(curve: SweepCurve, radius: float, metric: str) -> float:
    return float(getattr(curve, metric)[np.flatnonzero(curve.radius_px == radius)[0]])

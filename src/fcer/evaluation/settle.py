"""What an evaluation was asked for, settled before and while it runs: years, reference, radii and anchors."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fcer.core.regions import radius_in_pixels
from fcer.data.fire import SYNTHETIC
from fcer.errors import ConfigError, PredictionsError
from fcer.evaluation.controls import CONTROLS
from fcer.evaluation.segmentation_totals import MethodSegmentation
from fcer.maps.predicted_maps import PredictedMaps

__all__ = [
    "STUDENT",
    "anchors_around",
    "check_years",
    "choose_reference",
    "never_burnt",
    "parse_radii",
    "settle_anchor",
]

STUDENT, _ENSEMBLE = "student", "ensemble"
_AROUND = (0.5, 0.75, 1.25, 1.5, 2.0)


def check_years(years: Sequence[PredictedMaps]) -> tuple[str, ...]:
    """The methods, which all years share."""
    if not years:
        raise PredictionsError("no predicted maps to evaluate; give one file for each year")
    sources: dict[int, str] = {}
    for maps in years:
        if maps.year in sources:
            raise PredictionsError(
                f"{sources[maps.year]} and {maps.source} both hold the year {maps.year}; give one file for each year"
            )
        sources[maps.year] = maps.source
        if set(maps.methods) != set(years[0].methods):
            raise PredictionsError(
                f"{maps.source} has the methods {', '.join(maps.methods)}, "
                f"{years[0].source} has {', '.join(years[0].methods)}; give every year the same"
            )
    return years[0].methods


def choose_reference(methods: Sequence[str], reference: str | None) -> str:
    """The method whose errors are to be found; an error where the maps do not hold the one that was asked for."""
    if reference is None:
        return STUDENT if STUDENT in methods else next((m for m in methods if m not in CONTROLS), methods[0])
    if reference not in methods:
        raise ConfigError(f"reference: there is no method {reference!r}; choose one of {', '.join(methods)}")
    return reference


def parse_radii(radii: Iterable[float | str]) -> list[float]:
    """Ascending and without doubles, the full image last."""
    pixels = {math.inf}
    for radius in radii:
        try:
            pixels.add(math.inf if radius == "full" else radius_in_pixels(radius))
        except ValueError:
            raise ConfigError(
                f"radii: {radius!r} is no radius; give pixels from 0 on, metres such as 1500m, or full"
            ) from None
    return sorted(pixels)


def never_burnt(maps: PredictedMaps) -> bool:
    """Whether every fire says by its name that it is synthetic."""
    return maps.fire_id is not None and all(SYNTHETIC in str(name) for name in np.unique(maps.fire_id))


def settle_anchor(
    anchor: float | str | Mapping[int, float],
    segmentation: Sequence[Mapping[str, MethodSegmentation]],
    reference: str,
    years: Sequence[int],
) -> tuple[list[float], str]:
    """The anchor of each year in pixels, and where they come from."""
    if isinstance(anchor, Mapping):
        if missing := [year for year in years if year not in anchor]:
            raise ConfigError(f"anchor: there is none for {missing[0]}; give one for each year, or one for all")
        return [_fixed_anchor(anchor[year]) for year in years], "one for each year"
    pixels, origin = _one_anchor(anchor, segmentation, reference)
    return [pixels] * len(years), origin


def _one_anchor(
    anchor: float | str, segmentation: Sequence[Mapping[str, MethodSegmentation]], reference: str
) -> tuple[float, str]:
    if anchor == "auto":
        method = _ENSEMBLE if _ENSEMBLE in segmentation[0] else reference
        pixels = _mean_asd(segmentation, method)
        if math.isnan(pixels):
            raise ConfigError(f"anchor: {method} misses every fire and has no ASD; give the anchor in pixels")
        return pixels, f"the mean ASD of {method}"
    return _fixed_anchor(anchor), "as given"


def _fixed_anchor(anchor: float | str) -> float:
    try:
        pixels = radius_in_pixels(anchor)
    except ValueError:
        pixels = math.inf
    if math.isinf(pixels):
        raise ConfigError(f"anchor: {anchor!r} is no radius; give pixels from 0 on, metres such as 1500m, or auto")
    return pixels


def _mean_asd(segmentation: Sequence[Mapping[str, MethodSegmentation]], method: str) -> float:
    """Mean over the years in which the method found a fire."""
    means = np.array([year[method].mean_asd for year in segmentation])
    return float(means[~np.isnan(means)].mean()) if not np.isnan(means).all() else math.nan


def anchors_around(anchor_px: float, segmentation: Sequence[Mapping[str, MethodSegmentation]]) -> dict[str, float]:
    """The anchor itself, then those that show how much hangs on it."""
    anchors = {"anchor": anchor_px, **{f"{factor:g} x anchor": factor * anchor_px for factor in _AROUND}}
    own = {f"ASD of {method}": _mean_asd(segmentation, method) for method in segmentation[0]}
    return anchors | {name: radius for name, radius in own.items() if not math.isnan(radius)}

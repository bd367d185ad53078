"""The whole FCER evaluation of predicted maps: segmentation, sweep, per-image scores, tests, sensitivity."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from fcer.core.rank_bounds import RankBound
from fcer.core.region_totals import MethodRegions, RegionPlan
from fcer.core.regions import DEFAULT_RADII, radius_in_pixels
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.sweep import warn_where_undefined
from fcer.data.fire import SYNTHETIC
from fcer.errors import ConfigError, FcerWarning, PredictionsError, UndefinedMetricWarning
from fcer.evaluation.comparison import compare, confidence, method_pairs
from fcer.evaluation.controls import CONTROLS, split_controls
from fcer.evaluation.engines import Engine, Fires, choose_engine, reads
from fcer.evaluation.measured_year import MeasuredYear
from fcer.evaluation.progress import Progress, no_bar, terminal_bar
from fcer.evaluation.results import Results, Settings
from fcer.evaluation.segmentation_totals import MethodSegmentation
from fcer.evaluation.shards import read_whole
from fcer.evaluation.tables import (
    anchor_table,
    corp_table,
    own_errors_table,
    per_image_table,
    reliability_table,
    risk_coverage_table,
    segmentation_table,
    sensitivity_table,
    sweep_table,
    thresholds_table,
)
from fcer.maps.predicted_maps import PredictedMaps, open_maps

__all__ = ["Options", "evaluate", "evaluate_files"]

_AROUND = (0.5, 0.75, 1.25, 1.5, 2.0)
_STUDENT, _ENSEMBLE = "student", "ensemble"
_IN_MEMORY_BYTES = 512 << 20


class Options(TypedDict, total=False):
    """What an evaluation may be asked for; see `evaluate`."""

    reference: str | None
    anchor: float | str | Mapping[int, float]
    radii: Iterable[float | str]
    threshold: float
    bootstrap: int
    seed: int
    engine: str
    workers: int
    progress: Progress | None


def evaluate(
    maps: PredictedMaps | Sequence[PredictedMaps],
    *,
    reference: str | None = None,
    anchor: float | str | Mapping[int, float] = 4.0,
    radii: Iterable[float | str] = DEFAULT_RADII,
    threshold: float = FIRE_THRESHOLD,
    bootstrap: int = 1000,
    seed: int = 0,
    engine: str = "auto",
    workers: int = 1,
    progress: Progress | None = terminal_bar,
) -> Results:
    """Evaluate any number of methods on predicted maps of one or more years.

    Parameters
    ----------
    maps:
        One `PredictedMaps` for each year, all with the same methods.
    reference:
        The method whose errors every method's uncertainty is to find: by default `student` where there is
        one, else the first.
    anchor:
        The radius of tests and summaries: pixels, metres as in `"1500m"`, or `"auto"` for the mean average
        surface distance of `ensemble` (of the reference where there is none) over these years. Pixels by year give
        each year an anchor of its own.
    radii:
        Of the sweep, in pixels or metres; the full image is always added.
    threshold:
        A probability above it predicts fire: what counts as an error hangs on it.
    bootstrap:
        Draws of fires behind confidence intervals; 0 for none.
    seed:
        Of those draws.
    engine:
        `"exact"` sorts every pixel in memory, `"shards"` adds up shards of images, by 16-bit codes, in memory that
        does not grow with their number; `"auto"` chooses by the pixels of the
        largest year.
    workers:
        Processes that shards are worked on by, side by side; 0 for one on each core.
    progress:
        Makes a progress bar for a number of images; by default one on a terminal only. None for silence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.zeros((4, 32, 32), int); y[:, 10:20, 12:18] = 1
    >>> prob = np.clip(0.5 * y + 0.25 + 0.2 * rng.standard_normal(y.shape), 0, 1)
    >>> arrays = {"y": y, "mine_prob": prob, "mine_unc": 1 - abs(2 * prob - 1)}
    >>> results = evaluate(PredictedMaps.from_arrays(arrays, year=2021), bootstrap=0)
    >>> results.sweep.query("method == 'mine'")[["radius_px", "auroc", "n_errors"]].round(3).tail(2)
        radius_px  auroc  n_errors
    10       10.0  0.861       279
    11        inf  0.866       426
    """
    years = [maps] if isinstance(maps, PredictedMaps) else list(maps)
    stored = _check_years(years)
    reference = _choose_reference(stored, reference)
    methods, controls = split_controls(stored, reference)
    if not 0 <= threshold < 1:
        raise ConfigError(f"threshold: {threshold!r} is none; give a probability from 0 to below 1, such as 0.5")
    swept = _parse_radii(radii)
    engine = choose_engine(engine, years)
    if engine == "exact":
        years = [_in_memory(year) for year in years]
    elif progress is terminal_bar:
        progress = None  # shards have a bar of their own there
    n_images = sum(year.shape[0] for year in years)
    with closing((progress or no_bar)(n_images * reads(engine, len(methods), len(controls)))) as bar:
        way = Engine(engine, workers, bar)
        fires = [Fires.of(year, bootstrap, seed) for year in years]
        segmentation = [
            _segment(way, year, methods, of_year, threshold) for year, of_year in zip(years, fires, strict=True)
        ]
        anchor_px, anchor_from = _settle_anchor(anchor, segmentation, reference, [year.year for year in years])
        measured = []
        for year, of_year, found, own_px in zip(years, fires, segmentation, anchor_px, strict=True):
            anchors = _anchors(own_px, segmentation)
            finite = tuple(sorted({*swept[:-1], *anchors.values()}))
            plan = RegionPlan(finite, tuple(anchors.values()), way.ranks, threshold, bootstrap > 0)
            regions = way.sweep(year, methods, controls, reference, of_year, plan)
            _check_regions(year, regions, reference, plan, [*swept, own_px])
            measured.append(MeasuredYear(year, of_year, found, regions, anchors))
    pairs = method_pairs(methods, _STUDENT if _STUDENT in methods else reference, controls)
    per_image = per_image_table(measured)
    estimated = {
        year.maps.year: {
            pair: year.estimates(*pair) for pair in [*((method, "") for method in (*methods, *controls)), *pairs]
        }
        for year in measured
        if bootstrap
    }
    bounds = [found.bound for year in measured for part in (year.segmentation, year.regions) for found in part.values()]
    bound = RankBound(*map(max, zip(*bounds, strict=True)))
    return Results(
        Settings(
            years=tuple(year.year for year in years),
            methods=(*methods, *controls),
            controls=controls,
            reference=reference,
            threshold=threshold,
            anchor_px=float(np.mean(anchor_px)),
            anchors=tuple(anchor_px) if isinstance(anchor, Mapping) else (),
            anchor_from=anchor_from,
            bootstrap=bootstrap,
            seed=seed,
            engine=engine,
            synthetic=all(map(_never_burnt, years)),
            **{f"{name}_bound": value for name, value in bound._asdict().items()},
        ),
        sweep=sweep_table(measured, swept),
        segmentation=segmentation_table(measured),
        anchor=anchor_table(measured),
        per_image=per_image,
        tests=compare(per_image, pairs, bootstrap, seed, controls),
        intervals=confidence(estimated),
        sensitivity=sensitivity_table(measured, [pair for pair in pairs if pair[1] not in controls]),
        reliability=reliability_table(measured),
        corp=corp_table(measured),
        own_errors=own_errors_table(measured),
        risk_coverage=risk_coverage_table(measured),
        thresholds=thresholds_table(measured),
    )


def evaluate_files(paths: Sequence[Path | str], **options: Unpack[Options]) -> Results:
    """`evaluate` on predicted-maps files, one for each year; large ones are read in slices."""
    with ExitStack() as files:
        # every value is checked when it is read
        return evaluate([files.enter_context(open_maps(path, values=False)) for path in paths], **options)


def _in_memory(maps: PredictedMaps) -> PredictedMaps:
    """Read at once where there is room: every method's maps are read several times."""
    if sum(int(np.prod(array.shape)) * array.dtype.itemsize for array in maps.arrays.values()) > _IN_MEMORY_BYTES:
        return maps
    return replace(maps, arrays=read_whole(maps))


def _segment(
    way: Engine, maps: PredictedMaps, methods: Sequence[str], fires: Fires, threshold: float
) -> dict[str, MethodSegmentation]:
    found = way.segment(maps, methods, fires, threshold)
    if not any(found[method].burnt.any() for method in methods):
        raise PredictionsError(f"{maps.source}: no image has fire; FCER needs fire in y")
    for method, one in found.items():
        if one.saturated is not None and any(one.saturated):
            zeros, ones = (f"{100 * share:.2g} %" for share in one.saturated)
            warnings.warn(
                f"{maps.source}: {method}_prob is in half precision, in which {zeros} of its pixels tie at 0 and "
                f"{ones} at 1, so that AP cannot rank them; store probabilities in single precision",
                FcerWarning,
                stacklevel=4,
            )
    return found


def _check_regions(
    maps: PredictedMaps,
    regions: Mapping[str, MethodRegions],
    reference: str,
    plan: RegionPlan,
    asked: Sequence[float],
) -> None:
    """An error where the reference's errors are all of one kind by construction, a warning where there are none."""
    curve, anchor = regions[reference].curve, plan.anchors[0]
    n_pixels = int(curve.n_pixels[plan.radii.index(anchor)])
    if regions[reference].n_predicted in (0, n_pixels):
        what, kind = (
            ("no fire at all", "missed fire")
            if not regions[reference].n_predicted
            else (
                "nothing but fire",
                "a false alarm",
            )
        )
        raise PredictionsError(
            f"{maps.source}: {reference} predicts {what} within {anchor:g} px of fire at the threshold "
            f"{plan.threshold:g}, so that every error is {kind}; give another --threshold or --reference"
        )
    # errors are shared: where ranking is undefined for one method it is for all
    some = np.isin(curve.radius_px, asked)
    warn_where_undefined(curve.radius_px[some], curve.auroc[some], f" in {maps.year}")
    row = plan.radii.index(anchor)
    if np.isnan(curve.auroc_within[row]) and not np.isnan(curve.auroc[row]):
        warnings.warn(
            f"AUROC within the predicted class is undefined and NaN in {maps.year} for radius {anchor:g}: "
            "no pixels that were predicted alike are partly right, partly wrong",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    for method, found in regions.items():
        if method != reference and found.own is not None:
            own = np.array([found.own.errors.auroc])
            warn_where_undefined(np.array([anchor]), own, f" in {maps.year}, for the own errors of {method},")


def _check_years(years: Sequence[PredictedMaps]) -> tuple[str, ...]:
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


def _choose_reference(methods: Sequence[str], reference: str | None) -> str:
    if reference is None:
        return _STUDENT if _STUDENT in methods else next((m for m in methods if m not in CONTROLS), methods[0])
    if reference not in methods:
        raise ConfigError(f"reference: there is no method {reference!r}; choose one of {', '.join(methods)}")
    return reference


def _parse_radii(radii: Iterable[float | str]) -> list[float]:
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


def _never_burnt(maps: PredictedMaps) -> bool:
    """Whether every fire says by its name that it is synthetic."""
    return maps.fire_id is not None and all(SYNTHETIC in str(name) for name in np.unique(maps.fire_id))


def _settle_anchor(
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


def _anchors(anchor_px: float, segmentation: Sequence[Mapping[str, MethodSegmentation]]) -> dict[str, float]:
    """The anchor itself, then those that show how much hangs on it."""
    anchors = {"anchor": anchor_px, **{f"{factor:g} x anchor": factor * anchor_px for factor in _AROUND}}
    own = {f"ASD of {method}": _mean_asd(segmentation, method) for method in segmentation[0]}
    return anchors | {name: radius for name, radius in own.items() if not math.isnan(radius)}

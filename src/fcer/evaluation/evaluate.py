"""The whole FCER evaluation of predicted maps: segmentation, sweep, per-image scores, tests, sensitivity."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pandas as pd

from fcer.core.regions import DEFAULT_RADII, radius_in_pixels
from fcer.core.sweep import warn_where_undefined
from fcer.errors import ConfigError, PredictionsError
from fcer.evaluation.comparison import compare, confidence, method_pairs
from fcer.evaluation.engines import Engine, ExactEngine, ShardEngine, choose_engine
from fcer.evaluation.progress import Bar, Progress, no_bar, terminal_bar
from fcer.evaluation.results import Results, Settings
from fcer.evaluation.tables import (
    MeasuredYear,
    anchor_table,
    own_errors_table,
    per_image_table,
    reliability_table,
    risk_coverage_table,
    segmentation_table,
    sensitivity_table,
    sweep_table,
)
from fcer.evaluation.year import Fires, MethodSegmentation
from fcer.maps.predicted_maps import PredictedMaps, open_maps

__all__ = ["evaluate", "evaluate_files"]

_AROUND = (0.5, 0.75, 1.25, 1.5, 2.0)
_STUDENT, _ENSEMBLE = "student", "ensemble"


def evaluate(
    maps: PredictedMaps | Sequence[PredictedMaps],
    *,
    reference: str | None = None,
    anchor: float | str = 4.0,
    radii: Iterable[float | str] = DEFAULT_RADII,
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
        surface distance of `ensemble` (of the reference where there is none) over these years.
    radii:
        Of the sweep, in pixels or metres; the full image is always added.
    bootstrap:
        Draws of fires behind confidence intervals; 0 for none.
    seed:
        Of those draws.
    engine:
        `"exact"` sorts every pixel in memory, `"shards"` adds up shards of images, by 16-bit codes, in memory that
        does not grow with their number; `"auto"` chooses by the number of pixels.
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
    >>> results.sweep[["radius_px", "auroc", "n_errors"]].round(3).tail(2)
        radius_px  auroc  n_errors
    10       10.0  0.861       279
    11        inf  0.866       426
    """
    years = [maps] if isinstance(maps, PredictedMaps) else list(maps)
    methods = _check_years(years)
    reference = _choose_reference(methods, reference)
    swept = _parse_radii(radii)
    measure: Engine = ExactEngine()
    if choose_engine(engine, years) == "shards":
        measure = ShardEngine(workers)
        progress = None if progress is terminal_bar else progress  # shards have a bar of their own there
    n_reads = sum(year.shape[0] for year in years) * measure.reads(len(methods))
    with closing((progress or no_bar)(n_reads)) as bar:
        segmented = [measure.segment(year, bootstrap, seed, bar) for year in years]
        segmentation = [found for _, found in segmented]
        anchor_px, anchor_from = _settle_anchor(anchor, segmentation, reference)
        anchors = _anchors(anchor_px, segmentation)
        measured = [
            _measure_year(measure, year, *found, reference, swept, list(anchors.values()), bar)
            for year, found in zip(years, segmented, strict=True)
        ]
    pairs = method_pairs(methods, _STUDENT if _STUDENT in methods else reference)
    per_image = per_image_table(measured)
    tables = {
        "sweep": sweep_table(measured, swept),
        "segmentation": segmentation_table(measured),
        "anchor": anchor_table(measured, anchor_px),
    }
    asked = tuple(year.year for year in years), methods, reference, anchor_px, anchor_from, bootstrap, seed
    bound = measure.bound
    settings = Settings(*asked) if bound is None else Settings(*asked, "shards", bound.auroc, bound.auprc)
    return Results(
        settings,
        **tables,
        per_image=per_image,
        tests=compare(per_image, pairs, bootstrap, seed),
        intervals=_intervals(measured, tables["segmentation"], tables["anchor"], pairs),
        sensitivity=sensitivity_table(measured, anchors, pairs),
        reliability=reliability_table(measured),
        own_errors=own_errors_table(measured),
        risk_coverage=risk_coverage_table(measured),
    )


def evaluate_files(
    paths: Sequence[Path | str],
    *,
    reference: str | None = None,
    anchor: float | str = 4.0,
    radii: Iterable[float | str] = DEFAULT_RADII,
    bootstrap: int = 1000,
    seed: int = 0,
    engine: str = "auto",
    workers: int = 1,
    progress: Progress | None = terminal_bar,
) -> Results:
    """`evaluate` on predicted-maps files, one for each year; large ones are read in slices."""
    with ExitStack() as files:
        maps = [files.enter_context(open_maps(path, values=False)) for path in paths]
        if choose_engine(engine, maps) == "exact":  # which sees no value that was not checked
            files.close()
            maps = [files.enter_context(open_maps(path)) for path in paths]
            engine = "exact"
        return evaluate(
            maps,
            reference=reference,
            anchor=anchor,
            radii=radii,
            bootstrap=bootstrap,
            seed=seed,
            engine=engine,
            workers=workers,
            progress=progress,
        )


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
        return _STUDENT if _STUDENT in methods else methods[0]
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


def _settle_anchor(
    anchor: float | str, segmentation: Sequence[Mapping[str, MethodSegmentation]], reference: str
) -> tuple[float, str]:
    """The anchor in pixels, and where it comes from."""
    if anchor == "auto":
        method = _ENSEMBLE if _ENSEMBLE in segmentation[0] else reference
        pixels = _mean_asd(segmentation, method)
        if math.isnan(pixels):
            raise ConfigError(f"anchor: {method} misses every fire and has no ASD; give the anchor in pixels")
        return pixels, f"the mean ASD of {method}"
    try:
        pixels = radius_in_pixels(anchor)
    except ValueError:
        pixels = math.inf
    if math.isinf(pixels):
        raise ConfigError(f"anchor: {anchor!r} is no radius; give pixels from 0 on, metres such as 1500m, or auto")
    return pixels, "as given"


def _mean_asd(segmentation: Sequence[Mapping[str, MethodSegmentation]], method: str) -> float:
    """Mean over the years in which the method found a fire."""
    means = np.array([year[method].mean_asd for year in segmentation])
    return float(means[~np.isnan(means)].mean()) if not np.isnan(means).all() else math.nan


def _anchors(anchor_px: float, segmentation: Sequence[Mapping[str, MethodSegmentation]]) -> dict[str, float]:
    """The anchor itself, then those that show how much hangs on it."""
    anchors = {"anchor": anchor_px, **{f"{factor:g} x anchor": factor * anchor_px for factor in _AROUND}}
    own = {f"ASD of {method}": _mean_asd(segmentation, method) for method in segmentation[0]}
    return anchors | {name: radius for name, radius in own.items() if not math.isnan(radius)}


def _measure_year(
    measure: Engine,
    maps: PredictedMaps,
    fires: Fires,
    segmentation: Mapping[str, MethodSegmentation],
    reference: str,
    swept: Sequence[float],
    anchors: Sequence[float],
    bar: Bar,
) -> MeasuredYear:
    radii = sorted({*swept[:-1], *anchors})
    regions = measure.sweep(maps, reference, fires, radii, anchors, bar)
    # errors are shared: where ranking is undefined for one method it is for all
    curve = regions[reference].curve
    asked = np.isin(curve.radius_px, [*swept, anchors[0]])
    warn_where_undefined(curve.radius_px[asked], curve.auroc[asked], f" in {maps.year}")
    for method in maps.methods:
        if method != reference:
            own = np.array([regions[method].own_errors.auroc])
            warn_where_undefined(np.array(anchors[:1]), own, f" in {maps.year}, for the own errors of {method},")
    return MeasuredYear(maps, fires, segmentation, regions)


def _intervals(
    measured: Sequence[MeasuredYear],
    segmentation: pd.DataFrame,
    anchor: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """Of what the two tables hold, as far as it can be drawn anew from sums over images or pixels near fire."""
    if not len(measured[0].fires.draws):
        return confidence({}, {}, pairs)
    values: dict[int, dict[str, dict[Hashable, float]]] = {year.maps.year: {} for year in measured}
    for row in segmentation.merge(anchor, on=["year", "method"]).to_dict("records"):
        values[row["year"]][row["method"]] = row
    return confidence(values, {year.maps.year: year.replicates for year in measured}, pairs)

"""The whole FCER evaluation of predicted maps: segmentation, sweep, per-image scores, tests, sensitivity."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fcer.core.rank_bounds import RankBound
from fcer.core.region_sweep import warn_where_undefined
from fcer.core.region_totals import MethodRegions, RegionPlan
from fcer.core.regions import DEFAULT_RADII
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import ConfigError, FcerWarning, PredictionsError, UndefinedMetricWarning
from fcer.evaluation import settle, tables
from fcer.evaluation.comparison import compare, confidence, method_pairs
from fcer.evaluation.controls import split_controls
from fcer.evaluation.engines import Engine, Fires, choose_engine, reads
from fcer.evaluation.measured_year import MeasuredYear
from fcer.evaluation.progress import Progress, no_bar, terminal_bar
from fcer.evaluation.results import Results, Settings
from fcer.evaluation.segmentation_totals import MethodSegmentation
from fcer.evaluation.shards import read_whole
from fcer.maps.predicted_maps import PredictedMaps, open_maps

__all__ = ["evaluate", "evaluate_files"]

_IN_MEMORY_BYTES = 512 << 20


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
        does not grow with their number; `"auto"` chooses by the pixels of the largest year.
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
    stored = settle.check_years(years)
    reference = settle.choose_reference(stored, reference)
    methods, controls = split_controls(stored, reference)
    if not 0 <= threshold < 1:
        raise ConfigError(
            f"threshold: {threshold!r} is no threshold; give a probability from 0 to below 1, such as 0.5"
        )
    swept = settle.parse_radii(radii)
    engine = choose_engine(engine, years)
    if engine == "exact":
        years = [_in_memory(year) for year in years]
    elif progress is terminal_bar:
        progress = None  # shards have a bar of their own there
    asked = _Asked(years, methods, controls, reference, swept, threshold, bootstrap, seed)
    n_images = sum(year.shape[0] for year in years)
    with closing((progress or no_bar)(n_images * reads(engine, len(methods), len(controls)))) as bar:
        measured, anchor_from = _measure(asked, Engine(engine, workers, bar), anchor)
    return _tabulate(asked, measured, anchor_from, engine, by_year=isinstance(anchor, Mapping))


def evaluate_files(paths: Sequence[Path | str], **options: Any) -> Results:
    """`evaluate`, with its options, on predicted-maps files, one for each year; large ones are read in slices."""
    with ExitStack() as files:
        # every value is checked when it is read
        return evaluate([files.enter_context(open_maps(path, values=False)) for path in paths], **options)


def _in_memory(maps: PredictedMaps) -> PredictedMaps:
    """Read at once where there is room: every method's maps are read several times."""
    if sum(int(np.prod(array.shape)) * array.dtype.itemsize for array in maps.arrays.values()) > _IN_MEMORY_BYTES:
        return maps
    return replace(maps, arrays=read_whole(maps))


class _Asked(NamedTuple):
    """What is evaluated, and how."""

    years: Sequence[PredictedMaps]
    methods: tuple[str, ...]
    controls: tuple[str, ...]
    reference: str
    swept: Sequence[float]
    threshold: float
    bootstrap: int
    seed: int


def _measure(asked: _Asked, way: Engine, anchor: float | str | Mapping[int, float]) -> tuple[list[MeasuredYear], str]:
    """Every year, each with its anchors, and where these come from."""
    fires = [Fires.of(year, asked.bootstrap, asked.seed) for year in asked.years]
    segmentation = [_segment(way, asked, *year) for year in zip(asked.years, fires, strict=True)]
    numbers = [year.year for year in asked.years]
    anchor_px, anchor_from = settle.settle_anchor(anchor, segmentation, asked.reference, numbers)
    measured = []
    for year, of_year, found, own_px in zip(asked.years, fires, segmentation, anchor_px, strict=True):
        anchors = settle.anchors_around(own_px, segmentation)
        finite = tuple(sorted({*asked.swept[:-1], *anchors.values()}))
        plan = RegionPlan(finite, tuple(anchors.values()), way.ranks, asked.threshold, asked.bootstrap > 0)
        regions = way.sweep(year, asked.methods, asked.controls, asked.reference, of_year, plan)
        _check_regions(year, regions, asked.reference, plan, [*asked.swept, own_px])
        measured.append(MeasuredYear(year, of_year, found, regions, anchors))
    return measured, anchor_from


def _tabulate(
    asked: _Asked, measured: Sequence[MeasuredYear], anchor_from: str, engine: str, *, by_year: bool
) -> Results:
    """The results; `by_year` says whether years have anchors of their own."""
    methods, controls = asked.methods, asked.controls
    anchors = tuple(year.anchor_px for year in measured)
    every = (*methods, *controls)
    pairs = method_pairs(methods, settle.STUDENT if settle.STUDENT in methods else asked.reference, controls)
    singles = [(method, "") for method in every]
    estimated = {
        year.maps.year: {pair: year.estimates(*pair) for pair in [*singles, *pairs]}
        for year in measured
        if asked.bootstrap
    }
    bounds = [found.bound for year in measured for part in (year.segmentation, year.regions) for found in part.values()]
    bound = RankBound(*map(max, zip(*bounds, strict=True)))
    per_image = tables.per_image_table(measured)
    return Results(
        Settings(
            years=tuple(year.year for year in asked.years),
            methods=every,
            controls=controls,
            reference=asked.reference,
            threshold=asked.threshold,
            anchor_px=float(np.mean(anchors)),
            anchors=anchors if by_year else (),
            anchor_from=anchor_from,
            bootstrap=asked.bootstrap,
            seed=asked.seed,
            engine=engine,
            synthetic=all(map(settle.never_burnt, asked.years)),
            **{f"{name}_bound": value for name, value in bound._asdict().items()},
        ),
        sweep=tables.sweep_table(measured, asked.swept),
        segmentation=tables.segmentation_table(measured),
        anchor=tables.anchor_table(measured),
        per_image=per_image,
        tests=compare(per_image, pairs, asked.bootstrap, asked.seed, controls),
        intervals=confidence(estimated),
        sensitivity=tables.sensitivity_table(measured, [pair for pair in pairs if pair[1] not in controls]),
        reliability=tables.reliability_table(measured),
        corp=tables.corp_table(measured),
        own_errors=tables.own_errors_table(measured),
        risk_coverage=tables.risk_coverage_table(measured),
        thresholds=tables.thresholds_table(measured),
    )


def _segment(way: Engine, asked: _Asked, maps: PredictedMaps, fires: Fires) -> dict[str, MethodSegmentation]:
    found = way.segment(maps, asked.methods, fires, asked.threshold)
    if not any(one.burnt.any() for one in found.values()):
        raise PredictionsError(f"{maps.source}: no image has fire; FCER needs fire in y")
    for method, one in found.items():
        if one.saturated is not None and any(one.saturated):
            zeros, ones = (f"{100 * share:.2g} %" for share in one.saturated)
            warnings.warn(
                f"{maps.source}: {method}_prob is in half precision, in which {zeros} of its pixels tie at 0 and "
                f"{ones} at 1, so that AP cannot rank them; store probabilities in single precision",
                FcerWarning,
                stacklevel=5,
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
        nothing = not regions[reference].n_predicted
        what, kind = ("no fire at all", "missed fire") if nothing else ("nothing but fire", "a false alarm")
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
            stacklevel=4,
        )
    for method, found in regions.items():
        if method != reference and found.own is not None:
            own = np.array([found.own.errors.auroc])
            warn_where_undefined(np.array([anchor]), own, f" in {maps.year}, for the own errors of {method},")

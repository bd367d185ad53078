"""An evaluation as runs that MLflow's own charts compare: one for each method and year, radius by radius."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.results import Results
from fcer.tracking.runs import TrackedRun

__all__ = ["log_results"]

_SWEPT = ("auroc", "auprc", "brier", "nll")
_Row = tuple[str, float, int]


def log_results(
    tracked: TrackedRun, results: Results, folder: Path, *, passes: Mapping[str, int] | None = None
) -> None:
    """Log the files in `folder`, the tests, and below the run one for each method and year.

    Over several years, one more for each method has the mean. `passes` says what a method costs.
    """
    for path in results.files(folder):
        tracked.file(path, "results")
    tracked.tags({"fcer.years": " ".join(map(str, results.settings.years))})
    tracked.metrics(_tests(results.tests))
    for a, b in results.tests[["a", "b"]].head(1).to_numpy().tolist():
        tracked.tags({"fcer.test": f"{a} > {b}"})
    tracked.metrics({"anchor/px": results.settings.anchor_px})
    several = len(results.settings.years) > 1
    tables = [(name, getattr(results, name)) for name in ("sweep", "anchor", "segmentation")]
    for method in results.settings.methods:
        cost = {"passes": passes[method]} if passes and method in passes else {}
        for year in results.settings.years:
            one = {name: table[(table["year"] == year) & (table["method"] == method)] for name, table in tables}
            _log_method(tracked, f"{method} {year}", {"method": method, "year": year, **cost}, one)
        if several:
            mean = {name: _of(results.over_years(name), method) for name, _ in tables}
            _log_method(tracked, method, {"method": method, "year": "mean", **cost}, mean)


def _of(table: pd.DataFrame, method: str) -> pd.DataFrame:
    return table[table["method"] == method]


def _log_method(tracked: TrackedRun, name: str, settings: dict[str, Any], tables: Mapping[str, pd.DataFrame]) -> None:
    with tracked.child(name, settings) as run:
        run.tags({"fcer.command": "evaluate", "fcer.method": settings["method"]})
        run.curves([*_curves(tables["sweep"]), *_scalars(tables)])


def _curves(sweep: pd.DataFrame) -> Iterator[_Row]:
    """Steps are whole numbers: radii between pixels are logged by the metre instead, all of them."""
    finite = sweep[sweep["radius_px"] < math.inf]
    whole = bool((finite["radius_px"] % 1 == 0).all())
    for row in finite.to_dict("records"):
        for metric in _SWEPT:
            step = row["radius_px"] if whole else round(row["radius_px"] * PIXEL_METRES)
            yield f"{'fcer' if whole else 'fcer_m'}/{metric}", row[metric], int(step)


def _scalars(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Row]:
    """At the anchor and on the full image, and of the segmentation, under names of their own."""
    full = tables["sweep"][tables["sweep"]["radius_px"] == math.inf]
    for group, table in (("anchor", tables["anchor"]), ("full", full), ("segmentation", tables["segmentation"])):
        for row in table.drop(columns=["year", "method", "radius_px", "radius_m"], errors="ignore").to_dict("records"):
            yield from ((f"{group}/{metric}", float(value), 0) for metric, value in row.items())


def _tests(tests: pd.DataFrame) -> dict[str, float]:
    """The pooled tests of the first two methods; MLflow shows a chart for each, and the files have all pairs."""
    pooled = tests[tests["scope"] == "pooled"]
    values: dict[str, float] = {}
    for row in pooled.to_dict("records"):
        if (row["a"], row["b"]) == (pooled["a"].iloc[0], pooled["b"].iloc[0]):
            by = "" if row["unit"] == "image" else f"_by_{row['unit']}"
            scores = (
                (f"test/{row['metric']}/{key}{by}", row[key]) for key in ("p", "rank_biserial", "median_delta", "n")
            )
            values |= dict(_defined(scores))
    return values


def _defined(items: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    return ((name, float(value)) for name, value in items if not math.isnan(value))

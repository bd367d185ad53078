"""An evaluation as runs that MLflow's own charts compare: one for each method and year, radius by radius."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.results import Results
from fcer.tracking.evaluation_notes import evaluation_note, method_note
from fcer.tracking.guarantee_curves import guarantee_curves
from fcer.tracking.runs import TrackedRun
from fcer.tracking.views import CHARTED

__all__ = ["headline", "log_results"]

_SWEPT = (
    *("auroc", "auroc_within", "auprc", "brier", "nll", "auroc_alarms", "auroc_missed", "false_alarm_share"),
    *("brier_skill", "nll_skill"),
)
_RUN_COLOUR = "mlflow.runColor"
_TABLES = ("sweep", "segmentation", "per_image", "tests", "zones", "calibration")
_Row = tuple[str, float, int]


def log_results(
    tracked: TrackedRun,
    results: Results,
    folder: Path,
    *,
    passes: Mapping[str, int] | None = None,
    colours: Mapping[str, str] | None = None,
) -> None:
    """Log the files in `folder`, the tests, and below the run one for each method and year.

    Over several years, one more for each method has the mean. `passes` says what a method costs, and `colours` how it
    is drawn elsewhere.
    """
    for path in results.files(folder):
        tracked.file(path, "results")
    several = len(results.settings.years) > 1
    tracked.tags({"fcer.years": " ".join(map(str, results.settings.years))})
    tracked.tags({CHARTED: "sweep params.year = 'mean'" if several else "sweep"})
    tracked.metrics(headline(results))
    tracked.metrics(_tests(results.tests))
    for a, b in results.tests[["a", "b"]].head(1).to_numpy().tolist():
        tracked.tags({"fcer.test": f"{a} > {b}"})
    tracked.params({"anchor_px": results.settings.anchor_px})
    shown = {name: getattr(results, name) for name in _TABLES}
    tracked.tables({name: table for name, table in shown.items() if table is not None})
    tracked.curves(guarantee_curves(results, results.settings.reference))
    tables = [(name, getattr(results, name)) for name in ("sweep", "anchor", "segmentation")]
    for method in results.settings.methods:
        cost = {"passes": passes[method]} if passes and method in passes else {}
        look = {_RUN_COLOUR: colours[method]} if colours and method in colours else {}
        for year in results.settings.years:
            one = {name: table[(table["year"] == year) & (table["method"] == method)] for name, table in tables}
            promised = guarantee_curves(results, method, year)
            own = {"anchor_px": results.settings.anchor_of(year)} if results.settings.anchors else {}
            named = {"method": method, "year": year, **own, **cost}
            _log_method(tracked, f"{method} {year}", named, one, look, promised)
        if several:
            mean = {name: _of(results.over_years(name), method) for name, _ in tables}
            promised = guarantee_curves(results, method)
            _log_method(tracked, method, {"method": method, "year": "mean", **cost}, mean, look, promised)
    tracked.note(evaluation_note(results))


def headline(results: Results) -> dict[str, float]:
    """What methods are compared by: AUROC at the anchor and within the predicted class, as mean over the years."""
    anchor = results.anchor.groupby("method")[["auroc", "auroc_within"]].mean()
    values = {f"headline/{method}_{key}": anchor[key][method] for key in anchor for method in results.settings.methods}
    return dict(_defined(values.items()))


def _of(table: pd.DataFrame, method: str) -> pd.DataFrame:
    return table[table["method"] == method]


def _log_method(
    tracked: TrackedRun,
    name: str,
    settings: dict[str, Any],
    tables: Mapping[str, pd.DataFrame],
    look: Mapping[str, str],
    promised: Iterable[_Row],
) -> None:
    with tracked.child(name, settings) as run:
        run.tags({"fcer.command": "evaluate", "fcer.method": settings["method"], **look})
        run.note(method_note(settings["method"], settings["year"], tables["anchor"], tables["segmentation"]))
        # The anchor's first: MLflow lists metrics as they come, and of a sweep it shows the last
        run.curves([*_scalars(tables), *_curves(tables["sweep"]), *promised])


def _curves(sweep: pd.DataFrame) -> Iterator[_Row]:
    """Steps are whole numbers: radii between pixels are logged by the metre instead, all of them."""
    finite = sweep[sweep["radius_px"] < math.inf]
    whole = bool((finite["radius_px"] % 1 == 0).all())
    # A control has no probability of its own, and so no score of one
    swept = [metric for metric in _SWEPT if metric in finite and finite[metric].notna().any()]
    for row in finite.to_dict("records"):
        for metric in swept:
            step = row["radius_px"] if whole else round(row["radius_px"] * PIXEL_METRES)
            yield f"{'fcer' if whole else 'fcer_m'}/{metric}", row[metric], int(step)


def _scalars(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Row]:
    """At the anchor and on the full image, and of the segmentation, under names of their own."""
    full = tables["sweep"][tables["sweep"]["radius_px"] == math.inf]
    for group, table in (("anchor", tables["anchor"]), ("segmentation", tables["segmentation"]), ("full", full)):
        metrics = table.drop(columns=["year", "method", "radius_px", "radius_m"], errors="ignore")
        first = [name for name in _SWEPT if name in metrics]
        for row in metrics[[*first, *(name for name in metrics if name not in first)]].to_dict("records"):
            yield from ((f"{group}/{metric}", float(value), 0) for metric, value in row.items())


def _tests(tests: pd.DataFrame) -> dict[str, float]:
    """The pooled tests of the first two methods; MLflow shows a chart for each, and the files have all pairs."""
    pooled = tests[tests["scope"] == "pooled"]
    values: dict[str, float] = {}
    for row in pooled.to_dict("records"):
        if (row["a"], row["b"]) == (pooled["a"].iloc[0], pooled["b"].iloc[0]):
            by = "" if row["unit"] == "image" else f"_by_{row['unit']}"
            scores = (
                (f"wilcoxon/{row['metric']}/{key}{by}", row[key]) for key in ("p", "rank_biserial", "median_delta", "n")
            )
            values |= dict(_defined(scores))
    return values


def _defined(items: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    return ((name, float(value)) for name, value in items if not math.isnan(value))

"""Figures over the radius of the region: the sweep of ranking and calibration metrics."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.comparison import RANKING_METRICS
from fcer.evaluation.results import Results
from fcer.report.style import DASHED, SHORT_NAMES, Figure, Look, RadiusAxis, faded, panel, plot_text, told_apart

__all__ = ["calibration_sweep", "mean_sweep", "plot_sweep", "sweep_over_years", "year_sweeps"]


def sweep_over_years(results: Results, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Mean and population standard deviation over years: one row per metric, method and radius.

    `baseline` is what an uncertainty without any knowledge scores: 0.5 for AUROC, within a class too, for AUPRC
    the share of errors, as mean over years; none for the calibration metrics.
    """
    means = results.over_years("sweep")
    return pd.concat([_tidy(means, metric, f"{metric}_std") for metric in metrics], ignore_index=True)


def mean_sweep(results: Results, style: Mapping[str, Look]) -> Figure:
    """AUROC, AUPRC and AUROC within the predicted class over the radius, as means over years."""
    data = sweep_over_years(results, RANKING_METRICS)
    return Figure(
        "sweep",
        "Uncertainty ranking over the distance from fire",
        f"Higher is better: how well uncertainty tells the wrong pixels of {results.settings.reference} from the right "
        f"ones, among all pixels up to a distance from fire{_spread(results)}; dashed is chance.",
        data,
        _panels(data, style, results),
    )


def calibration_sweep(results: Results, style: Mapping[str, Look]) -> Figure:
    """Brier score and NLL over the radius, as means over years."""
    data = sweep_over_years(results, ("brier", "nll"))
    data = data[data["method"].isin(results.settings.own_methods)].reset_index(drop=True)
    return Figure(
        "calibration_sweep",
        "Calibration over the distance from fire",
        "Lower is better: how far fire probabilities are from what burnt, among all pixels up to a distance from "
        f"fire{_spread(results)}. Methods with the same probabilities share a line; controls have none of their own.",
        data,
        _panels(data, style, results),
    )


def year_sweeps(results: Results, style: Mapping[str, Look]) -> Figure:
    """The same year by year."""
    frames, panels = [], {}
    for metric in RANKING_METRICS:
        for year, rows in results.sweep.groupby("year"):
            data = _tidy(rows, metric, None)
            frames.append(data.assign(year=year))
            title = f"{SHORT_NAMES[metric]}, {year}"
            panels[f"{metric}_{year}"] = plot_sweep(data, style, title, results.settings.anchor_of(int(str(year))))
    return Figure(
        "sweep_by_year",
        "Uncertainty ranking, year by year",
        "As above, one plot for each year: what holds in every year is not the doing of a single one.",
        pd.concat(frames, ignore_index=True),
        panels,
    )


def plot_sweep(data: pd.DataFrame, style: Mapping[str, Look], title: str, anchor: float) -> go.Figure:
    """One metric's rows of `sweep_over_years`, a line for each method with a band where there is a spread.

    Methods with the same numbers share a line; one without any has none.
    """
    metric = data["metric"].iloc[0]
    figure = panel(title, "", SHORT_NAMES[metric])
    axis = RadiusAxis(data["radius_px"].to_list())
    for method, names in told_apart(data, ["value"], style).items():
        rows = data[data["method"] == method].sort_values("radius_px")
        _draw_method(figure, axis, rows, ", ".join(names), style[method])
    baseline = data[data["method"] == data["method"].iloc[0]].sort_values("radius_px")
    if baseline["baseline"].notna().any():
        x = axis.place(baseline["radius_px"].to_list())
        figure.add_scatter(x=x, y=baseline["baseline"], mode="lines", line=DASHED, name="chance", hoverinfo="y+name")
    axis.label(figure, "distance from fire up to")
    axis.mark_anchor(figure, anchor)
    return figure


def _draw_method(figure: go.Figure, axis: RadiusAxis, rows: pd.DataFrame, method: str, look: Look) -> None:
    """A line over the finite radii, a dotted step to the full image, and marks that tell their numbers."""
    radius = rows["radius_px"].to_numpy()
    x, y, std = np.array(axis.place(radius.tolist())), rows["value"].to_numpy(), rows["std"].to_numpy()
    finite, full = np.flatnonzero(np.isfinite(radius)), np.flatnonzero(np.isinf(radius))
    step = np.append(finite[-1:], full)
    silent = {"legendgroup": method, "hoverinfo": "skip", "showlegend": False}
    if not np.isnan(std).all():
        _draw_spread(figure, x, y, std, finite, full, look.colour, silent)
    line = {"color": look.colour, "width": 2, "dash": look.dash}
    figure.add_scatter(x=x[finite], y=y[finite], mode="lines", line=line, **silent)
    dotted = {"color": look.colour, "width": 1, "dash": "dot"}
    figure.add_scatter(x=x[step], y=y[step], mode="lines", line=dotted, **silent)
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": look.marker, "color": look.colour, "size": 7},
        name=plot_text(method),
        legendgroup=method,
        text=[f"{r:g} px, {r * PIXEL_METRES / 1000:.3g} km" if np.isfinite(r) else "full image" for r in radius],
        hovertemplate="%{text}: %{y:.4f}<extra>%{fullData.name}</extra>",
    )


def _draw_spread(
    figure: go.Figure,
    x: FloatArray,
    y: FloatArray,
    std: FloatArray,
    finite: IntArray,
    full: IntArray,
    colour: str,
    silent: dict[str, Any],
) -> None:
    """A band over the finite radii, and a bar at the full image."""
    # a polygon there and back, which places without a value would tear
    known = finite[~np.isnan(y[finite])]
    there, back = (y + std)[known], (y - std)[known][::-1]
    fill = {"fill": "toself", "fillcolor": faded(colour, 0.16), "line": {"width": 0}, "mode": "lines"}
    figure.add_scatter(x=np.append(x[known], x[known][::-1]), y=np.append(there, back), **fill, **silent)
    bar = {"type": "data", "array": std[full], "color": faded(colour, 0.5), "thickness": 4, "width": 0}
    figure.add_scatter(x=x[full], y=y[full], error_y=bar, mode="markers", marker={"size": 1, "color": colour}, **silent)


def _tidy(rows: pd.DataFrame, metric: str, std: str | None) -> pd.DataFrame:
    baseline = {"auroc": 0.5, "auroc_within": 0.5, "auprc": rows["prevalence"]}.get(metric, np.nan)
    return pd.DataFrame(
        {
            "metric": metric,
            "method": rows["method"],
            "radius_px": rows["radius_px"],
            "radius_m": rows["radius_m"],
            "value": rows[metric],
            "std": rows[std] if std else np.nan,
            "baseline": baseline,
        }
    )


def _panels(data: pd.DataFrame, style: Mapping[str, Look], results: Results) -> dict[str, go.Figure]:
    n_years = len(results.settings.years)
    # one year has no spread to show
    shown = data if n_years > 1 else data.assign(std=np.nan)
    where = f"mean of {n_years} years" if n_years > 1 else str(results.settings.years[0])
    return {
        str(metric): plot_sweep(rows, style, f"{SHORT_NAMES[str(metric)]}, {where}", results.settings.anchor_px)
        for metric, rows in shown.groupby("metric", sort=False)
    }


def _spread(results: Results) -> str:
    return " (bands: ± standard deviation over years)" if len(results.settings.years) > 1 else ""

"""Figures at the anchor: reliability, risk over coverage, sensitivity to anchor and threshold, several backbones."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.comparison import RANKING_METRICS
from fcer.evaluation.results import Results
from fcer.report.style import (
    DASHED,
    SHORT_NAMES,
    Figure,
    Look,
    RadiusAxis,
    draw_perfect,
    faded,
    panel,
    plot_text,
    told_apart,
)

__all__ = ["ablation", "ablation_data", "reliability", "reliability_data", "risk_coverage", "sensitivity", "thresholds"]


def reliability_data(results: Results) -> pd.DataFrame:
    """Mean probability and fire rate by bin of equal width, pixels of all years pooled."""
    bins = results.reliability[results.reliability["binning"] == "width"]
    sums = bins.assign(prob=bins["mean_prob"] * bins["n_pixels"], fire=bins["fire_rate"] * bins["n_pixels"])
    pooled = sums.groupby(["method", "lower", "upper"], as_index=False)[["n_pixels", "prob", "fire"]].sum()
    pooled["mean_prob"] = pooled.pop("prob") / pooled["n_pixels"]
    pooled["fire_rate"] = pooled.pop("fire") / pooled["n_pixels"]
    return pooled


def reliability(results: Results, style: Mapping[str, Look]) -> Figure:
    """Fire rate against fire probability."""
    data = reliability_data(results)
    figure = panel("Reliability at the anchor", "mean fire probability", "share of pixels that burnt", height=420)
    draw_perfect(figure)
    for method, names in told_apart(data, ["n_pixels", "mean_prob", "fire_rate"], style).items():
        rows, look = data[data["method"] == method], style[method]
        share = rows["n_pixels"] / max(rows["n_pixels"].sum(), 1)
        figure.add_scatter(
            x=rows["mean_prob"],
            y=rows["fire_rate"],
            mode="lines+markers",
            line={"color": look.colour, "width": 2, "dash": look.dash},
            marker={"symbol": look.marker, "size": 5 + 16 * np.sqrt(share), "line": {"color": "white", "width": 1}},
            name=plot_text(", ".join(names)),
            customdata=rows["n_pixels"],
            hovertemplate="%{x:.3f} → %{y:.3f}, %{customdata} pixels<extra>%{fullData.name}</extra>",
        )
    return Figure(
        "reliability",
        "Reliability",
        "On the dashed line, fires come as often as predicted; below it probabilities are too high, above it too low. "
        "Larger marks stand for more pixels; methods with the same probabilities share a line.",
        data,
        {"reliability": figure},
    )


def risk_coverage(results: Results, style: Mapping[str, Look]) -> Figure:
    """The error rate of what is kept when the least certain pixels are set aside."""
    data = results.over_years("risk_coverage")
    title, x = "Risk over coverage at the anchor", "share of pixels kept, the surest first"
    figure = panel(title, x, "share of errors", height=420)
    for method, look in style.items():
        rows = data[data["method"] == method]
        known = rows[rows["risk"].notna()]
        if len(results.settings.years) > 1:
            figure.add_scatter(
                x=[*known["coverage"], *known["coverage"][::-1]],
                y=[*(known["risk"] + known["risk_std"]), *(known["risk"] - known["risk_std"])[::-1]],
                fill="toself",
                fillcolor=faded(look.colour, 0.16),
                mode="lines",
                line={"width": 0},
                legendgroup=method,
                showlegend=False,
                hoverinfo="skip",
            )
        figure.add_scatter(
            x=rows["coverage"],
            y=rows["risk"],
            mode="lines",
            line={"color": look.colour, "width": 2, "dash": look.dash},
            legendgroup=method,
            name=plot_text(method),
            hovertemplate="%{x:.0%} kept: %{y:.4f}<extra>%{fullData.name}</extra>",
        )
    error_rate = results.over_years("anchor")["prevalence"].iloc[0]
    figure.add_scatter(x=[0, 1], y=[error_rate] * 2, mode="lines", line=DASHED, name="chance", hoverinfo="y+name")
    figure.update_xaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_yaxes(rangemode="tozero")
    return Figure(
        "risk_coverage",
        "Risk over coverage",
        f"Lower is better: the share of wrong pixels of {results.settings.reference} that is left when only the pixels "
        "that a method is surest of are kept; chance stays on the dashed line.",
        data,
        {"risk_coverage": figure},
    )


def sensitivity(results: Results, style: Mapping[str, Look]) -> Figure:
    """The comparison of methods at other anchors; controls are not compared."""
    data = results.sensitivity
    panels = {}
    for metric in RANKING_METRICS:
        rows = data[data["metric"] == metric]
        axis = RadiusAxis(range(math.ceil(rows["radius_px"].max()) + 1))
        figure = panel(f"{SHORT_NAMES[metric]} by anchor", "", SHORT_NAMES[metric])
        for method, look in style.items():
            scores = _scores_of(rows, method)
            if len(scores):
                _draw_anchors(figure, scores, method, look)
        axis.mark_anchor(figure, results.settings.anchor_px)
        axis.label(figure, "anchor")
        panels[metric] = figure
    return Figure(
        "sensitivity",
        "Sensitivity to the anchor",
        "The lines keep their order where the verdict does not hang on the anchor chosen; pointing at a mark shows the "
        "paired test there.",
        data,
        panels,
    )


def thresholds(results: Results, style: Mapping[str, Look]) -> Figure:
    """The ranking over the threshold above which the reference predicts fire."""
    data = results.over_years("thresholds")
    data = data[["method", *(column for column in data if column != "method")]]
    panels = {}
    for metric in ("auroc", "auroc_within"):
        figure = panel(f"{SHORT_NAMES[metric]} by threshold", "fire is predicted above", SHORT_NAMES[metric])
        for method, names in told_apart(data, [metric], style).items():
            rows, look = data[data["method"] == method], style[method]
            figure.add_scatter(
                x=rows["threshold"],
                y=rows[metric],
                mode="lines+markers",
                line={"color": look.colour, "width": 2, "dash": look.dash},
                marker={"symbol": look.marker, "size": 7},
                name=plot_text(", ".join(names)),
                customdata=rows[["n_errors", "false_alarm_share"]],
                hovertemplate="above %{x:.3g}: %{y:.4f}; %{customdata[0]:.0f} errors, %{customdata[1]:.0%} of them "
                "false alarms<extra>%{fullData.name}</extra>",
            )
        figure.add_hline(0.5, line=DASHED)
        figure.add_vline(results.settings.threshold, line={"color": "#9a9a9a", "width": 1, "dash": "dot"})
        figure.update_xaxes(range=[0, 1])
        panels[metric] = figure
    return Figure(
        "thresholds",
        "Sensitivity to the threshold",
        f"What counts as an error of {results.settings.reference} hangs on the probability above which it predicts "
        "fire, and with it how well each uncertainty finds errors: an order that turns with the threshold is no "
        "verdict on the uncertainty. Dotted is the threshold of all other numbers here, dashed a random ranking; means "
        "over the years that have both errors and right pixels at a threshold.",
        data,
        panels,
    )


def ablation_data(sets: Mapping[str, Results]) -> pd.DataFrame:
    """Mean and population standard deviation over years at the anchor, one row per result set and method."""
    columns = [f"{metric}{part}" for metric in RANKING_METRICS for part in ("", "_std")]
    frames = [
        part.over_years("anchor")[["method", "radius_px", *columns, "prevalence"]].assign(results=name)
        for name, part in sets.items()
    ]
    return pd.concat(frames, ignore_index=True)[["results", "method", "radius_px", *columns, "prevalence"]]


def ablation(sets: Mapping[str, Results], style: Mapping[str, Look]) -> Figure:
    """The ranking metrics at the anchor for several result sets, such as backbones, side by side."""
    data = ablation_data(sets)
    names = list(sets)
    panels = {}
    for metric in RANKING_METRICS:
        figure = panel(f"{SHORT_NAMES[metric]} at the anchor", "", SHORT_NAMES[metric])
        for place, (method, look) in enumerate(style.items()):
            rows = data[data["method"] == method]
            shift = 0.12 * (place - (len(style) - 1) / 2)
            figure.add_scatter(
                x=[names.index(name) + shift for name in rows["results"]],
                y=rows[metric],
                error_y={"type": "data", "array": rows[f"{metric}_std"], "color": faded(look.colour, 0.5)},
                mode="markers",
                marker={"symbol": look.marker, "color": look.colour, "size": 10},
                name=plot_text(method),
                text=[plot_text(name) for name in rows["results"]],
                hovertemplate="%{text}: %{y:.4f}<extra>%{fullData.name}</extra>",
            )
        ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": [plot_text(n) for n in names]}
        figure.update_xaxes(**ticks, range=[-0.5, len(names) - 0.5])
        panels[metric] = figure
    return Figure(
        "ablation",
        "Backbones side by side",
        "Higher is better: means over years, with the standard deviation over years; an order of methods that stays "
        "the same is not the doing of one backbone.",
        data,
        panels,
    )


def _scores_of(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """A method's score at each anchor with the tests it is part of, from both sides of the pairs."""
    sides = []
    for side, against in (("a", "b"), ("b", "a")):
        mine = rows[rows[side] == method]
        sides.append(mine.assign(score=mine[f"{side}_score"], other=mine[against]))
    return pd.concat(sides).sort_values(["radius_px", "other"], kind="stable")


def _draw_anchors(figure: go.Figure, rows: pd.DataFrame, method: str, look: Look) -> None:
    once = rows.drop_duplicates(["anchor", "radius_px"])
    tests = {
        anchor: "".join(f"<br>{_test_in_short(row)}" for row in same.to_dict("records"))
        for anchor, same in rows.groupby("anchor")
    }
    figure.add_scatter(
        x=once["radius_px"],
        y=once["score"],
        mode="lines+markers",
        line={"color": look.colour, "width": 2, "dash": look.dash},
        marker={"symbol": look.marker, "size": 8},
        name=plot_text(method),
        text=[
            f"{plot_text(anchor)}, {radius:.3g} px, {radius * PIXEL_METRES / 1000:.3g} km: {score:.4f}{tests[anchor]}"
            for anchor, radius, score in zip(once["anchor"], once["radius_px"], once["score"], strict=True)
        ],
        hovertemplate="%{text}<extra>%{fullData.name}</extra>",
    )


def _test_in_short(row: Mapping[Any, Any]) -> str:
    pair = plot_text(f"{row['a']} > {row['b']}")
    p = row["p"]
    if np.isnan(p):
        return f"{pair}: not tested"
    return f"{pair}: r {row['rank_biserial']:+.2f}, p {p:.3g}, n {row['n']:.0f}"

"""Reliability by isotonic regression, with the band of a calibrated forecast, and the parts of the Brier score."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fcer.evaluation.results import Results
from fcer.report.style import Figure, Look, draw_perfect, faded, panel, plot_text, told_apart

__all__ = ["corp"]


def corp(results: Results, style: Mapping[str, Look]) -> Figure:
    """Fire rate over fire probability, year by year: bins cannot be chosen to please, since there are none."""
    panels = {}
    for year, rows in results.corp.groupby("year"):
        title = f"Isotonic reliability, {year}"
        figure = panel(title, "fire probability", "share of pixels that burnt", height=420)
        draw_perfect(figure)
        for method, names in told_apart(rows, ["mean_prob", "fire_rate", "n_pixels"], style).items():
            _draw(figure, rows[rows["method"] == method], ", ".join(names), style[method])
        panels[str(year)] = figure
    return Figure(
        "corp",
        "Reliability without bins",
        "The fire rate as it rises with the probability, by isotonic regression (CORP). A calibrated forecast's line "
        "lies in its band in 95 % of cases if pixels burn each by itself; pixels of one fire do not, so that a line "
        f"just outside is no proof. {_parts(results)}",
        results.corp,
        panels,
    )


def _draw(figure: go.Figure, rows: pd.DataFrame, name: str, look: Look) -> None:
    """Each stretch of probabilities is a step; the band is behind it."""
    rows = rows.sort_values("lower")
    x = rows[["lower", "upper"]].to_numpy().ravel()
    rate, low, high = (np.repeat(rows[column].to_numpy(), 2) for column in ("fire_rate", "band_low", "band_high"))
    if not np.isnan(low).any():
        fill = {"fill": "toself", "fillcolor": faded(look.colour, 0.16), "line": {"width": 0}, "mode": "lines"}
        silent = {"legendgroup": name, "hoverinfo": "skip", "showlegend": False}
        figure.add_scatter(x=np.append(x, x[::-1]), y=np.append(high, low[::-1]), **fill, **silent)
    figure.add_scatter(
        x=x,
        y=rate,
        mode="lines",
        line={"color": look.colour, "width": 2, "dash": look.dash},
        legendgroup=name,
        name=plot_text(name),
        customdata=np.repeat(rows["n_pixels"].to_numpy(), 2),
        hovertemplate="%{x:.3f} → %{y:.3f}, %{customdata} pixels<extra>%{fullData.name}</extra>",
    )


def _parts(results: Results) -> str:
    """Brier's score as the sum that it is, in words, once for all methods that share their probabilities."""
    means = results.over_years("anchor")
    names = ["brier", "miscalibration", "discrimination", "uncertainty"]
    known = means[means["method"].isin(results.settings.own_methods)][["method", *names]].dropna()
    shared = known.groupby(names, sort=False)["method"].agg(", ".join).reset_index()
    said = [
        f"{row['method']} {row['brier']:.3f} = {row['miscalibration']:.3f} - {row['discrimination']:.3f} + "
        f"{row['uncertainty']:.3f}"
        for row in shared.to_dict("records")
    ]
    return f"Brier score = miscalibration - discrimination + uncertainty: {'; '.join(said)}." if said else ""

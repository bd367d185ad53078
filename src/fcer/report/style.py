"""What all figures share: one colour and marker for each method, one look, one radius axis."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.looks import Look, looks

__all__ = [
    "LOOK",
    "METRIC_NAMES",
    "SHORT_NAMES",
    "Figure",
    "Look",
    "RadiusAxis",
    "faded",
    "looks",
    "panel",
    "plot_text",
    "told_apart",
]

METRIC_NAMES = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "auroc_within": "AUROC within the predicted class",
    "brier": "Brier score",
    "nll": "NLL",
}
SHORT_NAMES = METRIC_NAMES | {"auroc_within": "AUROC within class"}
"""Where there is little room, as on a phone."""

_TICKS = 14
_INK, _GREY, _LINE = "#222222", "#6b6b6b", "#e3e3e3"
LOOK: dict[str, Any] = {
    "font": {"family": "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif", "size": 12, "color": _INK},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "template": "none",
}
"""What every plot has of plotly's layout."""
DASHED = {"color": _GREY, "width": 1.5, "dash": "dash"}
"""The line of what no method has done: chance, or perfection."""
_AXIS = {
    "showline": True,
    "linecolor": "#9a9a9a",
    "gridcolor": _LINE,
    "zeroline": False,
    "ticks": "outside",
    "tickcolor": "#9a9a9a",
    "automargin": True,
}


@dataclass(frozen=True)
class Figure:
    """A figure of the report: the numbers behind it, and one or more plots of them by name."""

    name: str
    title: str
    caption: str
    data: pd.DataFrame
    panels: Mapping[str, go.Figure]
    columns: int = 0
    """Where not 0, its panels are small, and so many of them stand in a row where there is room."""
    digits: int | None = None
    """Of its numbers as CSV; all where None."""
    whole: Callable[[], go.Figure] | None = None
    """Draws all panels as one plot, for the static files, where a page shows them one by one."""

    def file_name(self, panel: str) -> str:
        """What a panel's files are called, without suffix."""
        return self.name if panel == self.name else f"{self.name}_{panel}"


def told_apart(data: pd.DataFrame, columns: Sequence[str], methods: Iterable[str]) -> dict[str, list[str]]:
    """Those methods that have numbers in `columns`, under the first with the same: one line is enough for them."""
    seen: dict[bytes, list[str]] = {}
    for method in methods:
        values = data.loc[data["method"] == method, list(columns)].to_numpy(dtype=float)
        if not np.isnan(values).all():
            seen.setdefault(values.tobytes(), []).append(method)
    return {names[0]: names for names in seen.values()}


def faded(colour: str, opacity: float) -> str:
    """A colour one can see through.

    >>> faded("#0072B2", 0.2)
    'rgba(0,114,178,0.2)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def plot_text(text: str) -> str:
    """Any text as plotly shows it: names come from files, and plotly reads tags."""
    return html.escape(text, quote=False)


def panel(title: str, x: str, y: str, height: int = 380) -> go.Figure:
    """An empty plot in the report's look; made in one piece, since plotly checks every later change anew."""
    return go.Figure(
        layout={
            **LOOK,
            "title": {"text": title, "x": 0.01, "xanchor": "left", "font": {"size": 15}},
            "margin": {"l": 56, "r": 16, "t": 48, "b": 56},
            "height": height,
            # below the plot, where it can take more lines on a narrow screen
            "legend": {"orientation": "h", "x": 0, "xanchor": "left", "yref": "container", "y": 0, "yanchor": "bottom"},
            "hoverlabel": {"bgcolor": "#ffffff"},
            "xaxis": {**_AXIS, "title": {"text": x, "standoff": 8}},
            "yaxis": {**_AXIS, "title": {"text": y, "standoff": 8}},
        }
    )


def draw_perfect(figure: go.Figure) -> None:
    """The diagonal on which fires come as often as predicted, in a square around it."""
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=DASHED, name="perfect", hoverinfo="skip")
    figure.update_xaxes(range=[-0.03, 1.03])
    figure.update_yaxes(range=[-0.03, 1.03])


class RadiusAxis:
    """Where radii stand on an axis: the full image at its right end, a little apart from the others."""

    def __init__(self, radii: Sequence[float]) -> None:
        self.finite = sorted({radius for radius in radii if math.isfinite(radius)})
        self.has_full = any(math.isinf(radius) for radius in radii)
        last = self.finite[-1] if self.finite else 0.0
        gap = 1.5 * (last - self.finite[0]) / max(len(self.finite) - 1, 1) if self.finite else 1.0
        self.full = last + (gap or 1.0)

    def place(self, radii: Sequence[float]) -> list[float]:
        """The places of some radii.

        >>> RadiusAxis([0, 1, 2, math.inf]).place([1, math.inf])
        [1.0, 3.5]
        """
        return [float(radius) if math.isfinite(radius) else self.full for radius in radii]

    def label(self, figure: go.Figure, title: str) -> None:
        """Ticks in pixels with kilometres below, `full` where the full image stands."""
        step = math.ceil(len(self.finite) / _TICKS) if self.finite else 1
        shown = self.finite[::step]
        # kilometres are longer: with every other tick there is room on a narrow screen
        kilometres = [f"{r * PIXEL_METRES / 1000:.2g}" if place % 2 == 0 else "" for place, r in enumerate(shown)]
        texts = [
            f"{radius:g}<br><span style='color:{_GREY}'>{km}</span>"
            for radius, km in zip(shown, kilometres, strict=True)
        ]
        places = self.place(shown)
        if self.has_full:
            places, texts = [*places, self.full], [*texts, "full"]
        figure.update_xaxes(tickmode="array", tickvals=places, ticktext=texts, tickangle=0, tickfont={"size": 10})
        figure.update_xaxes(title_text=f"{title}: px <span style='color:{_GREY}'>(below: km)</span>")

    def mark_anchor(self, figure: go.Figure, anchor: float) -> None:
        """A thin line at the anchor."""
        figure.add_vline(anchor, line={"color": "#9a9a9a", "width": 1, "dash": "dot"})
        note = {"text": "anchor", "showarrow": False, "font": {"size": 10, "color": _GREY}}
        figure.add_annotation(x=anchor, y=1, yref="paper", yanchor="top", xanchor="left", xshift=3, **note)

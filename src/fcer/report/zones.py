"""Guaranteed zones on the test years: whether they keep what they promise, and what area that takes."""

import html
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fcer.evaluation.zone_verdict import area_sentences, preferred, realised, zones_verdict
from fcer.report.markup import csv_text, download, downloads, note, section, table, table_row
from fcer.report.style import Figure, Look, panel, plot_text
from fcer.report.wording import number

__all__ = ["zone_figure", "zones_section"]

_HEADS = (
    *("Year", "Method", "Family", "Calibrated by", "nominal miss", "realised miss, 95%", "area [km²]"),
    *("times burnt", "fires"),
)
_BY = {"validation": "validation fires", "cross": "other years"}
_FAMILIES = {
    "threshold": "probability at least λ",
    "margin": "a margin around the predicted perimeter",
    "widened": "probability + κ · uncertainty at least λ",
}
_MOST_ROWS = 60
"""Of a table that is not folded away."""


def zones_section(zones: pd.DataFrame, figure: str, tests: pd.DataFrame | None = None) -> str:
    """What `zones.csv` says, the broken promises first; `figure` is the markup of `zone_figure`.

    `tests` are all tests of the evaluation; those of zones' areas are told here.
    """
    groups = [[_line(row) for row in year.to_dict("records")] for _, year in zones.groupby("year", sort=False)]
    remark = (
        "A zone is calibrated on fires that are not tested, so that on average it misses at most the nominal share of "
        "what burns next. The realised miss is the mean over fires, with the interval over draws of fires; times burnt "
        "is the zone's area against the burnt one. Without numbers: too few fires to guarantee that miss. Zones by "
        "other years' fires rest on models that are alike from year to year; zones.csv has the bound without that."
    )
    said = [zones_verdict(zones), *([] if tests is None else area_sentences(tests))]
    verdict = "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in said)
    rows = table(_HEADS, groups)
    if len(zones) > _MOST_ROWS:
        rows = f"<details><summary>all {len(zones)} zones</summary>{rows}</details>"
    links = downloads(download("zones.csv", csv_text(zones)))
    return section("Guaranteed zones", verdict, figure, rows, note(remark), links)


def zone_figure(zones: pd.DataFrame, style: Mapping[str, Look]) -> Figure:
    """Area against nominal miss, one line a method and one panel a family, as means over years."""
    keys = ["family", "method", "nominal_miss"]
    data = preferred(zones).groupby(keys, sort=False)[["realised_miss", "area_km2"]].mean().reset_index()
    panels = {}
    for family, lines in data.dropna(subset="area_km2").groupby("family", sort=False):
        plot = panel(_FAMILIES.get(str(family), str(family)), "nominal miss", "mean area [km²]", height=420)
        for method, rows in lines.groupby("method", sort=False):
            look = style[str(method)]
            ordered = rows.sort_values("nominal_miss")
            plot.add_scatter(
                x=ordered["nominal_miss"],
                y=ordered["area_km2"],
                mode="lines+markers",
                line={"color": look.colour, "width": 2},
                marker={"symbol": look.marker, "size": 8},
                name=plot_text(str(method)),
                customdata=ordered["realised_miss"],
                hovertemplate="%{x:.0%} promised, %{customdata:.1%} missed: %{y:.4g} km²<extra></extra>",
            )
        plot.update_xaxes(tickformat=".0%", rangemode="tozero")
        plot.update_yaxes(rangemode="tozero")
        panels[f"zone_area_{family}"] = plot
    caption = (
        "Lower is better: the area that a zone needs to keep its promise, by the share of the fire that it may miss; "
        "one line for each method, means over years."
    )
    return Figure("zone_area", "Area of guaranteed zones", caption, data, panels)


def _line(row: Mapping[Any, Any]) -> str:
    labels = [str(row["year"]), row["method"], row["family"], _BY.get(row["fitted"], "")]
    if math.isnan(row["realised_miss"]):
        return table_row([*labels, f"{row['nominal_miss']:g}"], ["–"] * 4)
    missed = realised(row)
    cells = [
        f"{row['nominal_miss']:g}",
        f"<strong>{missed}</strong>" if row["exceeds"] else missed,
        f"{row['area_km2']:,.1f}",
        number(row["times_burnt"], 2),
        f"{row['fires']:.0f}",
    ]
    return table_row(labels, cells)

"""Guaranteed zones on the test years: whether they keep what they promise, and what area that takes."""

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fcer.report.markup import csv_text, download, downloads, note, section, table, table_row
from fcer.report.style import Figure, Look, panel, plot_text
from fcer.report.wording import number

__all__ = ["read_zones", "zone_figure", "zones_section", "zones_verdict"]

_HEADS = ("Year", "Method", "Family", "nominal miss", "realised miss, 95%", "area [km²]", "times burnt", "fires")
_DASHES = ("solid", "dash", "dot")


def read_zones(folders: Sequence[Path]) -> pd.DataFrame | None:
    """The guaranteed zones of all years, where they lie beside the evaluations."""
    files = [folder / "zones.csv" for folder in folders if (folder / "zones.csv").exists()]
    # only an empty cell is missing: a method may be called "NA"
    how: dict[str, Any] = {"dtype": {"method": "str"}, "keep_default_na": False, "na_values": [""]}
    return pd.concat([pd.read_csv(file, **how) for file in files], ignore_index=True) if files else None


def zones_verdict(zones: pd.DataFrame) -> str:
    """Whether a zone missed more than it promised beyond chance, and which did."""
    # zones that could not be guaranteed have neither yes nor no there
    broken = zones[zones["exceeds"].isin([True])]
    if broken.empty:
        return "No zone missed more of the fire than its nominal miss beyond chance."
    named = "; ".join(f"{_name(row)}: {_realised(row)}" for row in broken.to_dict("records"))
    return (
        f"{len(broken)} of {int(zones['realised_miss'].notna().sum())} zones missed more of the fire than their "
        f"nominal miss beyond chance: {named}."
    )


def zones_section(zones: pd.DataFrame, figure: str) -> str:
    """What `zones.csv` says, the broken promises first; `figure` is the markup of `zone_figure`."""
    groups = [[_line(row) for row in year.to_dict("records")] for _, year in zones.groupby("year", sort=False)]
    remark = (
        "A zone is calibrated on fires that are not tested, so that on average it misses at most the nominal share of "
        "what burns next. The realised miss is the mean over fires, with the interval over draws of fires; times burnt "
        "is the zone's area against the burnt one. Without numbers: too few fires to guarantee that miss."
    )
    verdict = f"<p>{html.escape(zones_verdict(zones))}</p>"
    links = downloads(download("zones.csv", csv_text(zones)))
    return section("Guaranteed zones", verdict, table(_HEADS, groups), note(remark), links, figure)


def zone_figure(zones: pd.DataFrame, style: Mapping[str, Look]) -> Figure:
    """Area against nominal miss, as means over years."""
    keys = ["method", "family", "nominal_miss"]
    numbers = ["realised_miss", "area_km2"]
    data = zones.groupby(keys, sort=False)[numbers].mean().reset_index()
    plot = panel("Area of zones", "nominal miss", "mean area [km²]", height=420)
    families = list(dict.fromkeys(data["family"]))
    for (method, family), rows in data.dropna(subset="area_km2").groupby(["method", "family"], sort=False):
        look = style[str(method)]
        ordered = rows.sort_values("nominal_miss")
        plot.add_scatter(
            x=ordered["nominal_miss"],
            y=ordered["area_km2"],
            mode="lines+markers",
            line={"color": look.colour, "width": 2, "dash": _DASHES[families.index(family) % len(_DASHES)]},
            marker={"symbol": look.marker, "size": 8},
            name=plot_text(f"{method}, {family}"),
            customdata=ordered["realised_miss"],
            hovertemplate="%{x:.0%} promised, %{customdata:.1%} missed: %{y:.4g} km²<extra>%{fullData.name}</extra>",
        )
    plot.update_xaxes(tickformat=".0%", rangemode="tozero")
    plot.update_yaxes(rangemode="tozero")
    caption = (
        "Lower is better: the area that a zone needs to keep its promise, by the share of the fire that it may miss; "
        "one line for each method and family of zones, means over years."
    )
    return Figure("zone_area", "Guaranteed zones", caption, data, {"zone_area": plot})


def _line(row: Mapping[Any, Any]) -> str:
    labels = [str(row["year"]), row["method"], row["family"]]
    if math.isnan(row["realised_miss"]):
        return table_row([*labels, f"{row['nominal_miss']:g}"], ["–"] * 4)
    realised = _realised(row)
    cells = [
        f"{row['nominal_miss']:g}",
        f"<strong>{realised}</strong>" if row["exceeds"] else realised,
        f"{row['area_km2']:,.1f}",
        number(row["times_burnt"], 2),
        f"{row['fires']:.0f}",
    ]
    return table_row(labels, cells)


def _realised(row: Mapping[Any, Any]) -> str:
    low, high = (number(row[end]) for end in ("miss_low", "miss_high"))
    return f"{number(row['realised_miss'])} ({low} to {high})"


def _name(row: Mapping[Any, Any]) -> str:
    return f"{row['method']}, {row['family']}, {row['nominal_miss']:g} in {row['year']}"

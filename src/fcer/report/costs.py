"""What each method is worth against what it costs: errors ranked and zone area by milliseconds a sample."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from fcer.errors import PredictionsError
from fcer.evaluation.results import Results
from fcer.report.style import Figure, Look, panel, plot_text
from fcer.runtime.csv_cells import unguarded
from fcer.runtime.sealed_text import read_sealed_csv

__all__ = ["cost_figure", "read_costs"]


def read_costs(folders: Sequence[Path]) -> pd.DataFrame | None:
    """What methods cost, of the first evaluation that measured it."""
    files = [folder / "costs.csv" for folder in folders if (folder / "costs.csv").exists()]
    if not files:
        return None
    try:
        # only an empty cell is missing: a method may be called "NA"
        costs = read_sealed_csv(files[0], dtype={"method": "str"}, keep_default_na=False, na_values=[""])
        if not {"method", "ms_per_sample"} <= set(costs):
            raise ValueError("a column is lacking")
        numbers = costs.drop(columns="method").astype("float64")
        return costs.assign(method=costs["method"].fillna("").map(unguarded), **numbers)
    except (OSError, ValueError, KeyError) as error:
        raise PredictionsError(
            f"{files[0]}: no table of costs ({error}); remove it, or run fcer evaluate --out {files[0].parent} again"
        ) from None


def cost_figure(costs: pd.DataFrame, results: Results, zones: pd.DataFrame | None, style: Mapping[str, Look]) -> Figure:
    """AUROC within the predicted class, and zone area where there are zones, against time; means over years."""
    within = results.anchor.groupby("method", sort=False)["auroc_within"].mean().rename("auroc_within")
    data = costs.merge(within, on="method")
    panels = {"cost_auroc_within": _panel(data, "auroc_within", "AUROC within the predicted class", style)}
    if zones is not None:
        # the smallest miss that was guaranteed to all
        held = zones.dropna(subset="area_km2")
        common = held.groupby("nominal_miss")["method"].nunique()
        miss = common[common == common.max()].index.min()
        area = held[held["nominal_miss"] == miss].groupby("method")["area_km2"].mean().rename("area_km2")
        data = data.merge(area, on="method", how="left")
        if data["area_km2"].notna().any():
            title = f"zone area at a miss of {miss:.0%} [km²]"
            panels["cost_zone_area"] = _panel(data.dropna(subset="area_km2"), "area_km2", title, style)
    caption = (
        "What a method is worth against what it costs: left and high is better in the first plot, left and low in the "
        "second. Time is that of one sample where the method runs alone, measured in this run."
    )
    return Figure("costs", "Worth and cost", caption, data, panels)


def _panel(data: pd.DataFrame, worth: str, title: str, style: Mapping[str, Look]) -> go.Figure:
    plot = panel(title, "ms a sample", title, height=420)
    for row in data.to_dict("records"):
        look = style[str(row["method"])]
        plot.add_scatter(
            x=[row["ms_per_sample"]],
            y=[row[worth]],
            mode="markers",
            marker={"symbol": look.marker, "size": 11, "color": look.colour},
            name=plot_text(str(row["method"])),
            customdata=[[row["passes"], row["parameters"]]],
            hovertemplate="%{y:.4g} in %{x:.3g} ms, %{customdata[0]} passes, %{customdata[1]:,} parameters",
        )
    plot.update_xaxes(type="log")
    return plot

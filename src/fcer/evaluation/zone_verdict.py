"""What guaranteed zones kept and cost on the years that they were held to, in sentences."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fcer.evaluation.zone_table import DECISION_MISS

__all__ = ["area_sentences", "broken_promises", "preferred", "realised", "zones_verdict"]

_BY = {"validation": "by validation fires", "cross": "by other years' fires"}


def preferred(zones: pd.DataFrame) -> pd.DataFrame:
    """The zones by which methods are compared: calibrated by other years' fires, where there are such."""
    cross = zones[zones["fitted"] == "cross"]
    return cross if len(cross) else zones


def broken_promises(zones: pd.DataFrame) -> pd.DataFrame:
    """Zones that missed more than they promised beyond chance; those that promised nothing are not among them."""
    return zones[zones["exceeds"].isin([True])]


def zones_verdict(zones: pd.DataFrame) -> str:
    """Whether a zone missed more than it promised beyond chance, and which did."""
    broken = broken_promises(zones)
    if broken.empty:
        return "No zone missed more of the fire than its nominal miss beyond chance."
    named = "; ".join(f"{_name(row)}: {realised(row)}" for row in broken.to_dict("records"))
    return (
        f"{len(broken)} of {int(zones['realised_miss'].notna().sum())} zones missed more of the fire than their "
        f"nominal miss beyond chance: {named}."
    )


def area_sentences(tests: pd.DataFrame) -> list[str]:
    """Who needs the smaller zone for the same promise, by the pooled paired tests of the first method."""
    pooled = tests[tests["metric"].str.startswith("zone_area/") & (tests["scope"] == "pooled")]
    return (
        [_area_sentence(row) for row in pooled[pooled["a"] == pooled["a"].iloc[0]].to_dict("records")]
        if len(pooled)
        else []
    )


def realised(row: Mapping[Any, Any]) -> str:
    """The realised miss with its interval."""
    shown = "undefined" if math.isnan(row["realised_miss"]) else f"{row['realised_miss']:.3f}"
    known = not math.isnan(row["miss_low"])
    return f"{shown} ({row['miss_low']:.3f} to {row['miss_high']:.3f})" if known else f"{shown} (no interval)"


def _name(row: Mapping[Any, Any]) -> str:
    by = f", {_BY[row['fitted']]}" if row.get("fitted") in _BY else ""
    return f"{row['method']}, {row['family']}, {row['nominal_miss']:g} in {row['year']}{by}"


def _area_sentence(row: Mapping[Any, Any]) -> str:
    family = row["metric"].partition("/")[2]
    saved = row["median_delta"]
    how = "no smaller and no larger than" if not saved else f"{abs(saved):.3g} km² {'below' if saved > 0 else 'above'}"
    shown = "is shown" if row["p_holm"] < 0.05 else "is not shown"
    interval = "" if math.isnan(row["ci_low"]) else f" (saved: {row['ci_low']:.3g} to {row['ci_high']:.3g}, 95 %)"
    p = "undefined" if math.isnan(row["p"]) else f"{row['p']:.3g}"
    return (
        f"Smallest {family} zone at {100 * DECISION_MISS:g} % miss: in the median over {row['n']:.0f} fires that of "
        f"{row['a']} is {how} that of {row['b']}{interval}; that it is smaller {shown} (one-sided p {p}, after Holm's "
        f"correction {row['p_holm']:.3g})."
    )

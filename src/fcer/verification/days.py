"""A record day by day: what a chart over time and a table of days show."""

import hashlib
from datetime import date
from typing import NamedTuple

import pandas as pd

from fcer.verification.alarms import KINDS, Season
from fcer.verification.record import SCORES
from fcer.verification.truth import SEEN

__all__ = ["Day", "days_of"]


class Day(NamedTuple):
    """One day of a student's record."""

    day: date
    metrics: dict[str, float]
    """Means over the day's fires, numbers of forecasts, and evidence as a share of what raises an alarm."""
    rows: pd.DataFrame
    mark: str
    """Stands for all that is known of the day."""


def days_of(record: pd.DataFrame, season: Season) -> list[Day]:
    """The days of a season on which forecasts were verified."""
    own = record[(record["student"] == season.student) & record["date"].str.startswith(f"{season.year}-")]
    evidence = {row["date"]: row for row in season.evidence.to_dict("records")}
    named = [name for name in map(str, own) if name in SCORES or name.startswith(("miss_", "zone_km2_"))]
    found = []
    for text, rows in own.groupby("date", sort=True):
        seen = rows[rows["status"] == SEEN]
        if seen.empty:
            continue
        means = {f"verify/{name}": float(seen[name].mean()) for name in named if seen[name].notna().any()}
        counts = {f"verify/{status}": float(n) for status, n in rows["status"].value_counts().items()}
        marks = {f"alarm/{kind}": float(evidence[text][kind]) for kind in KINDS if kind not in season.untested}
        metrics = {**means, **counts, **marks}
        mark = hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()[:16]
        found.append(Day(date.fromisoformat(str(text)), metrics, rows, mark))
    return found

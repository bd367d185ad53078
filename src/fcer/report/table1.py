"""The paper's Table 1: segmentation, calibration and uncertainty ranking by year and method, and their means."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

from fcer.evaluation.climatology import CLIMATOLOGY, mean_scores, scores_by_year
from fcer.evaluation.controls import CONTROLS
from fcer.evaluation.results import Results

__all__ = [
    "ALL_COLUMNS",
    "COLUMNS",
    "MEAN",
    "Column",
    "beside_paper",
    "best_cells",
    "borrowed",
    "format_cell",
    "paper_table1",
    "table1",
]

MEAN = "mean"
"""What stands for the year in rows that are means over years."""


class Column(NamedTuple):
    """A metric of the table: its column, its name, whether more is better, and the digits it is shown with."""

    key: str
    name: str
    higher_better: bool
    digits: int


COLUMNS = (
    Column("ap", "AP", True, 2),
    Column("asd_km", "ASD [km]", False, 2),
    Column("brier", "Brier", False, 3),
    Column("nll", "NLL", False, 3),
    Column("auroc", "AUROC", True, 3),
    Column("auprc", "AUPRC", True, 3),
)
"""Those of the paper."""

ALL_COLUMNS = (
    *COLUMNS[:2],
    Column("asd_common_km", "ASD common [km]", False, 2),
    Column("missed", "missed", False, 0),
    COLUMNS[2],
    Column("brier_skill", "Brier skill", True, 3),
    *COLUMNS[3:5],
    Column("auroc_within", "AUROC within", True, 3),
    *COLUMNS[5:],
)
"""Ours: besides, ASD over the images where every method has a boundary, fires missed altogether, skill against the
region's base rate, and ranking within the predicted class."""


_OF_PROBABILITY = ("ap", "asd_km", "brier", "brier_skill", "nll")
"""Metrics that know nothing of an uncertainty."""


def table1(results: Results) -> pd.DataFrame:
    """One row per year and method, then one per method with the mean over years and, in `METRIC_std`, its spread.

    Spread is the population standard deviation over years; there is none for a single year, and no mean. The last row
    of each is `climatology`, the base rate everywhere.
    """
    years = scores_by_year(results)
    rows = years.assign(year=years["year"].astype(str))
    if len(results.settings.years) > 1:
        rows = pd.concat([rows, mean_scores(results).assign(year=MEAN)], ignore_index=True)
    else:
        keys = ("asd_m", "asd_common_m", *(column.key for column in ALL_COLUMNS))
        rows = rows.assign(**{f"{key}_std": np.nan for key in keys})
    for name in ("asd", "asd_common"):
        rows = rows.assign(**{f"{name}_km{end}": rows[f"{name}_m{end}"] / 1000 for end in ("", "_std")})
    order = {method: place for place, method in enumerate((*results.settings.methods, CLIMATOLOGY))}
    ordered = rows.sort_values(
        ["year", "method"], key=lambda column: column.map(order) if column.name == "method" else column, kind="stable"
    )
    return ordered[_names(ALL_COLUMNS)].reset_index(drop=True)


def paper_table1() -> pd.DataFrame:
    """Table 1 as the paper prints it, in the columns of `table1`; DUDES is `student` here."""
    with (files("fcer.report") / "paper_table1.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype={"year": "str"})[_names(COLUMNS)]


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Ours, the paper's and the difference, one row per year, method and metric that both have.

    Means are set beside each other only where they are over the paper's years.
    """
    paper = paper_table1()
    keys = [column.key for column in COLUMNS]
    ours, theirs = (
        frame.melt(["year", "method"], keys, var_name="metric", value_name=name)
        for frame, name in ((table, "ours"), (paper, "paper"))
    )
    joined = theirs.merge(ours, on=["year", "method", "metric"])
    if set(table["year"]) != set(paper["year"]):
        joined = joined[joined["year"] != MEAN]
    joined = joined.assign(difference=joined["ours"] - joined["paper"])
    return joined[["year", "method", "metric", "ours", "paper", "difference"]].reset_index(drop=True)


def format_cell(row: pd.Series, column: Column) -> tuple[str, str]:
    """The value, and its spread where it has one, in the paper's digits; `–` where it is undefined."""
    value, spread = row[column.key], row[f"{column.key}_std"]
    if np.isnan(value):
        return "–", ""
    return f"{value:.{column.digits}f}", "" if np.isnan(spread) else f"{spread:.{column.digits}f}"


def best_cells(table: pd.DataFrame) -> set[tuple[int, str]]:
    """Row and metric of the best value of each year, as shown: equal to the digits shown is equally good.

    Where all methods are equal, or there is one alone, none is best; a control never is, nor climatology, nor what is
    borrowed.
    """
    best = set()
    ranked = table[~table["method"].isin((*CONTROLS, CLIMATOLOGY))]
    borrowers = borrowed(table)
    for _, year in ranked.groupby("year", sort=False):
        for column in ALL_COLUMNS:
            own = year[~year["method"].isin(borrowers)] if column.key in _OF_PROBABILITY else year
            shown = own[column.key].map(lambda value, digits=column.digits: float(f"{value:.{digits}f}"))
            winner = shown.max() if column.higher_better else shown.min()
            if shown.nunique() > 1:
                best |= {(row, column.key) for row in own.index[shown == winner]}
    return best


def borrowed(table: pd.DataFrame) -> set[str]:
    """Methods whose probabilities are those of a method before them: all that is said of those is said of that one."""
    owners: set[bytes] = set()
    found = set()
    for method, rows in table[~table["method"].isin(CONTROLS)].groupby("method", sort=False):
        values = rows.sort_values("year")[list(_OF_PROBABILITY)].to_numpy(dtype=float)
        if values.tobytes() in owners:
            found.add(str(method))
        owners.add(values.tobytes())
    return found


def _names(columns: Sequence[Column]) -> list[str]:
    return ["year", "method", *(name for column in columns for name in (column.key, f"{column.key}_std"))]

"""An evaluation in a terminal's width."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import pandas as pd

from fcer.evaluation.anchor_words import within_anchor
from fcer.evaluation.climatology import mean_scores, scores_by_year
from fcer.evaluation.verdict import verdict
from fcer.evaluation.zone_verdict import preferred, zones_verdict

if TYPE_CHECKING:
    from fcer.evaluation.results import Results, Settings

__all__ = ["summarize"]

_WIDTH = 120
# column of the tables, its name here, its factor, its digits
_COLUMNS = (
    ("ap", "AP", 1.0, 3),
    ("asd_m", "ASD km", 1e-3, 2),
    ("asd_common_m", "common", 1e-3, 2),
    ("brier", "Brier", 1.0, 3),
    ("brier_skill", "skill", 1.0, 3),
    ("nll", "NLL", 1.0, 3),
    ("nll_skill", "skill", 1.0, 3),
    ("auroc", "AUROC", 1.0, 3),
    ("auroc_within", "within", 1.0, 3),
    ("auprc", "AUPRC", 1.0, 3),
    ("prevalence", "random", 1.0, 3),
)


def summarize(results: Results) -> str:
    """The paper's table of years and their mean, then one line for each pooled test."""
    settings = results.settings
    where = f"{within_anchor(settings)}, {settings.anchor_from}"
    rows = [["year", "method", *(name for _, name, _, _ in _COLUMNS), "missed"]]
    by_year = scores_by_year(results).sort_values("year", kind="stable")
    rows += [_year_row(row) for _, row in by_year.iterrows()]
    if len(settings.years) > 1:
        rows += [line for _, row in mean_scores(results).iterrows() for line in _mean_rows(row)]
    zones = [] if results.zones is None else [zones_verdict(results.zones)]
    head = [
        *(["SYNTHETIC fires: these numbers say nothing of real ones"] if settings.synthetic else []),
        *zones,
        *verdict(results),
        f"FCER {where}; errors of {settings.reference} at the threshold {settings.threshold:g}",
        "common: ASD where every method has a boundary; skill: against the base rate; "
        "within: AUROC within the predicted class; random: AUPRC of a random ranking; climatology: the base rate "
        "everywhere",
        *_engine_lines(settings),
    ]
    tests = _test_lines(results.tests[results.tests["scope"] == "pooled"])
    wrapped = [line for text in head for line in textwrap.wrap(text, _WIDTH, subsequent_indent="  ")]
    areas = ["", *_align(_zone_rows(results.zones))] if results.zones is not None else []
    return "\n".join([*wrapped, "", *_align(rows), *areas, "", *tests])


def _zone_rows(zones: pd.DataFrame) -> list[list[str]]:
    """Promised and realised miss and area of each method's zones, as means over years; the same zones once."""
    rows = [["zones", "method", "promised", "missed", "area km²", "x burnt", "2n fires"]]
    means = preferred(zones).groupby(["family", "method", "nominal_miss"], sort=False)
    columns = means[["realised_miss", "area_km2", "times_burnt", "area_2n_km2"]].mean().dropna(subset="area_km2")
    alike = columns.reset_index(level="method", drop=True).set_index("area_km2", append=True).index.duplicated()
    columns = columns[~alike]
    for family, method, miss, missed, area, times, later in columns.reset_index().itertuples(index=False):
        rows.append([family, method, f"{miss:g}", f"{missed:.3f}", f"{area:.1f}", f"{times:.1f}", f"{later:.1f}"])
    return rows


def _engine_lines(settings: Settings) -> list[str]:
    """How ranks came about, where they are not those of all pixels sorted."""
    if settings.engine == "exact":
        return []
    auroc, auprc = (_rounded_up(bound) for bound in (settings.auroc_bound, settings.auprc_bound))
    within = f"AUROC within {auroc}, AUPRC and AP within {auprc} of exact ranks (more in evaluation.json)"
    exact = "exact, as in half precision every value has a code of its own"
    ranks = within if settings.auroc_bound or settings.auprc_bound else exact
    return [f"ranked by 16-bit codes, shard by shard: {ranks}"]


def _rounded_up(bound: float) -> str:
    """In two digits, and never below the bound.

    >>> _rounded_up(1.01e-4), _rounded_up(9.99e-5), _rounded_up(0)
    ('1.1e-04', '1.0e-04', '0.0e+00')
    """
    text = f"{bound:.1e}"
    if float(text) >= bound:
        return text
    return f"{bound + 10 ** (math.floor(math.log10(bound)) - 1) / 2:.1e}"


def _year_row(row: pd.Series) -> list[str]:
    values = [_shown(row[column] * factor, digits) for column, _, factor, digits in _COLUMNS]
    missed = "" if math.isnan(row["missed"]) else f"{row['missed']:.0f}/{row['fire_images']:.0f}"
    return [str(row["year"]), row["method"], *values, missed]


def _mean_rows(row: pd.Series) -> list[list[str]]:
    """The mean over years, and below it the deviation."""
    means, deviations = (
        [_shown(row[f"{column}{suffix}"] * factor, digits) for column, _, factor, digits in _COLUMNS]
        for suffix in ("", "_std")
    )
    return [["mean", row["method"], *means, ""], ["   ±", "", *deviations, ""]]


def _shown(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _test_lines(pooled: pd.DataFrame) -> list[str]:
    """The first method's tests; those of the others, which may be many, are in the files."""
    if pooled.empty:
        return []
    first = pooled[pooled["a"] == pooled["a"].iloc[0]]
    more = len(pooled) - len(first)
    return [*(_test_line(row) for _, row in first.iterrows()), *([f"{more} more in tests.json"] if more else [])]


def _test_line(row: pd.Series) -> str:
    return (
        f"{row['a']} > {row['b']}, {_metric(row['metric'])} per {row['unit']}: n {row['n']}, "
        f"r {row['rank_biserial']:+.2f}, p {row['p']:.3g} (Holm {row['p_holm']:.3g}), "
        f"median difference {row['median_delta']:+.3f}"
    )


def _metric(name: str) -> str:
    """What was compared: of zones, the area that is saved."""
    zone, _, family = name.partition("/")
    return f"km² saved by its {family} zone" if zone == "zone_area" else name.upper().replace("_", " ")


def _align(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

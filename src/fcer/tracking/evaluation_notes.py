"""Descriptions of evaluations on the pages of MLflow, in Markdown: the verdict and the table."""

import pandas as pd

from fcer.evaluation.results import Results
from fcer.evaluation.verdict import verdict

__all__ = ["evaluation_note", "method_note"]

_COLUMNS = {
    "auroc": "AUROC",
    "auroc_within": "AUROC within the class",
    "auprc": "AUPRC",
    "ap": "AP",
    "asd_m": "ASD m",
    "brier_skill": "Brier skill",
}


def evaluation_note(results: Results) -> str:
    """The verdict and the table of an evaluation."""
    settings = results.settings
    years = settings.years
    several = len(years) > 1
    when = f"the mean of {', '.join(map(str, years))}" if several else str(years[0])
    synthetic = "**These fires are synthetic**: the numbers say nothing of real ones.\n\n" if settings.synthetic else ""
    heading = f"Errors of {settings.reference} within {settings.anchor_px:.3g} px of fire, {when}:"
    said = "\n".join(f"- {sentence}" for sentence in verdict(results) or ["no ranking is defined"])
    names = ("anchor", "segmentation")
    anchor, segmentation = (results.over_years(name) if several else getattr(results, name) for name in names)
    table = anchor.merge(segmentation, on="method", how="left", suffixes=("", "_of_masks"))
    return f"{synthetic}{heading}\n\n{said}\n\n{_table(table)}"


def method_note(method: str, year: int | str, anchor: pd.DataFrame, segmentation: pd.DataFrame) -> str:
    """The scores of one method."""
    over = "as mean over the years" if year == "mean" else f"on {year}"
    table = anchor.merge(segmentation, on="method", how="left", suffixes=("", "_of_masks"))
    return (
        f"How well the uncertainty of **{method}** ranks errors near fire, {over}. At the anchor:\n\n"
        f"{_table(table)}\n\nOver the radius: `fcer/auroc` and others, whose step is the radius in pixels."
    )


def _table(scores: pd.DataFrame) -> str:
    columns = {key: name for key, name in _COLUMNS.items() if key in scores and scores[key].notna().any()}
    lines = [f"| method | {' | '.join(columns.values())} |", f"|:---|{'---:|' * len(columns)}"]
    for row in scores.to_dict("records"):
        cells = ["" if pd.isna(row[key]) else f"{row[key]:.{0 if key == 'asd_m' else 3}f}" for key in columns]
        lines.append(f"| {row['method']} | {' | '.join(cells)} |")
    return "\n".join(lines)

"""Descriptions on the pages of MLflow, in Markdown: of the experiment, of evaluations, and links between runs."""

import mlflow
import pandas as pd
from mlflow.entities import Run
from mlflow.utils.validation import MAX_TAG_VAL_LENGTH

from fcer.evaluation.results import Results
from fcer.evaluation.verdict import verdict
from fcer.tracking.links import page_of
from fcer.tracking.views import share_view

__all__ = ["about_experiment", "evaluation_note", "method_note", "with_links"]

_FROM = "fcer.from."
_REGISTERED = "fcer.registered"
_COLUMNS = {
    "auroc": "AUROC",
    "auroc_within": "AUROC within the class",
    "auprc": "AUPRC",
    "ap": "AP",
    "asd_m": "ASD m",
    "brier_skill": "Brier skill",
}


def about_experiment(experiment: str) -> str:
    """What the experiment holds, and where its charts are."""
    query = "&compareRunsMode=CHART&searchFilter=params.year%20%3D%20'mean'&orderByKey=metrics.%60anchor%2Fauroc%60"
    charts = f"[the charts of all means]({_inner(experiment)}{query})"
    return (
        "Uncertainty of next-day wildfire spread, held to its errors near the fire's edge (FCER).\n\n"
        "Every command is one run, whose description says what came of it. Below an `evaluate` run is one for each "
        f"method and year, and one for each method's mean: {charts}. There the step of `fcer/auroc` is the radius in "
        "pixels of 375 m. `anchor/...` are the scores at the anchor, by which methods are compared, `full/...` those "
        "of the full image, `wilcoxon/...` the paired tests, `segmentation/...` the fire masks themselves, `test/...` "
        "the members on the test years.\n"
    )


def with_links(client: mlflow.MlflowClient, run: Run, markdown: str) -> str:
    """A run's description with links to its charts, to its model and to the runs it was built from, cut to fit."""
    experiment, tags = run.info.experiment_id, run.data.tags
    lines = []
    if shared := share_view(client, run):
        query = f"&compareRunsMode=CHART&viewStateShareKey={shared}"
        lines.append(f"**Charts**: [compare the runs below]({_inner(experiment)}{query})")
    if _REGISTERED in tags:
        name, version = tags[_REGISTERED].removeprefix("models:/").split("/")
        lines.append(f"**Registered** as [{name}, version {version}](#/models/{name}/versions/{version})")
    built = {key.removeprefix(_FROM): value for key, value in sorted(tags.items()) if key.startswith(_FROM)}
    if built:
        links = ", ".join(f"[{name}]({_inner(experiment, run_id)})" for name, run_id in built.items())
        lines.append(f"**Built from** {links}")
    end = "".join(f"\n\n{line}" for line in lines)
    room = MAX_TAG_VAL_LENGTH - len(end) - 2
    return (markdown if len(markdown) <= room else markdown[:room] + "\n…") + end


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


def _inner(experiment: str, run_id: str = "") -> str:
    return page_of(experiment, run_id).removeprefix("/")


def _table(scores: pd.DataFrame) -> str:
    columns = {key: name for key, name in _COLUMNS.items() if key in scores and scores[key].notna().any()}
    lines = [f"| method | {' | '.join(columns.values())} |", f"|:---|{'---:|' * len(columns)}"]
    for row in scores.to_dict("records"):
        cells = ["" if pd.isna(row[key]) else f"{row[key]:.{0 if key == 'asd_m' else 3}f}" for key in columns]
        lines.append(f"| {row['method']} | {' | '.join(cells)} |")
    return "\n".join(lines)

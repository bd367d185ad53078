"""Descriptions on the pages of MLflow, in Markdown: of the experiment, and links from run to run."""

import mlflow
from mlflow.entities import Run
from mlflow.utils.validation import MAX_TAG_VAL_LENGTH

from fcer.tracking.links import page_of
from fcer.tracking.views import share_view

__all__ = ["about_experiment", "with_links"]

_FROM = "fcer.from."
_REGISTERED = "fcer.registered"


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
        lines.append(f"**Charts**: [what matters first]({_inner(experiment)}{query})")
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


def _inner(experiment: str, run_id: str = "") -> str:
    return page_of(experiment, run_id).removeprefix("/")

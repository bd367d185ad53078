"""Views of the MLflow UI that are stored with the experiment, so that a link opens the charts that matter first.

MLflow's own "Share" button stores them in the same way: as a tag of the experiment, named in the link.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import mlflow
from mlflow.entities import Run
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

__all__ = ["CHARTED", "VIEW", "share_view"]

VIEW = "mlflow.sharedViewState."
"""Begins the name of the experiment's tag that holds a view."""
CHARTED = "fcer.charted"
"""A run's tag that says which runs are to be compared, and how: a key of `_VIEWS`, then a filter."""


class _View(NamedTuple):
    title: str
    charts: Sequence[Sequence[str]]
    """The metrics of each chart."""
    order: str
    """The metric that orders the runs: the best is first."""
    of_itself: bool = False
    """Whether the run that has the view is charted, by date, rather than those below it."""


_ALARMS = ("alarm/forecast", "alarm/uncertainty", "alarm/zones", "alarm/inputs")
_VIEWS = {
    "sweep": _View(
        "Sweep: step = radius in px", (("fcer/auroc",), ("fcer/auroc_within",), ("fcer/auprc",)), "anchor/auroc"
    ),
    "trials": _View("Trials: step = epoch", (("val/auroc",), ("val/loss",), ("train/loss",)), "best/val_auroc"),
    "record": _View(
        "Record by date; an alarm is raised at 1",
        (("verify/ap",), ("verify/lift",), ("verify/nll_skill",), ("verify/auroc",), _ALARMS),
        "verify/ap",
        of_itself=True,
    ),
}


def share_view(client: mlflow.MlflowClient, run: Run) -> str | None:
    """Store a run's view, and return its key; none where nothing is to be charted."""
    kind, _, only = run.data.tags.get(CHARTED, "").partition(" ")
    if kind not in _VIEWS:
        return None
    view = _VIEWS[kind]
    wanted = f"attributes.run_id = '{run.info.run_id}'"
    if not view.of_itself:
        wanted = f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{run.info.run_id}'"
    state = {
        "searchFilter": f"{wanted} and {only}" if only else wanted,
        "orderByKey": f"metrics.`{view.order}`",  # by anything but the date, nested runs are listed one by one
        "orderByAsc": False,
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "compareRunSections": [{"uuid": kind, "name": view.title, "display": True, "isReordered": False}],
        "compareRunCharts": [_line(metrics, kind, "time" if view.of_itself else "step") for metrics in view.charts],
    }
    client.set_experiment_tag(run.info.experiment_id, VIEW + run.info.run_id, json.dumps(state))
    return str(run.info.run_id)


def _line(metrics: Sequence[str], section: str, x: str) -> dict[str, Any]:
    """A chart as the UI of MLflow keeps it."""
    return {
        "type": "LINE",
        "uuid": metrics[0],
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "metricKey": metrics[0],
        "selectedMetricKeys": list(metrics),
        "runsCountToCompare": 10,
        "lineSmoothness": 0,
        "scaleType": "linear",
        "xAxisKey": x,
        "xAxisScaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "useGlobalLineSmoothing": False,
        "useGlobalXaxisKey": False,
        "displayPoints": True,
        "range": {},
    }

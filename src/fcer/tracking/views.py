"""Views of the MLflow UI that are stored with the experiment, so that a link opens the charts that matter first.

MLflow's own "Share" button stores them in the same way: as a tag of the experiment, named in the link.
"""

import json
from collections.abc import Sequence
from typing import Any

import mlflow
from mlflow.entities import Run
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

__all__ = ["CHARTED", "VIEW", "share_view"]

VIEW = "mlflow.sharedViewState."
"""Begins the name of the experiment's tag that holds a view."""
CHARTED = "fcer.charted"
"""A run's tag that says which of its nested runs are to be compared, and how: a key of `_VIEWS`, then a filter."""

_VIEWS: dict[str, tuple[str, Sequence[str], str]] = {
    "sweep": (
        "Sweep: step = radius in px",
        ("fcer/auroc", "fcer/auroc_within", "fcer/auprc"),
        "anchor/auroc",
    ),
    "trials": ("Trials: step = epoch", ("val/auroc", "val/loss", "train/loss"), "best/val_auroc"),
}
"""Title, metrics with a chart each, and the metric that orders the runs: the best is first."""


def share_view(client: mlflow.MlflowClient, run: Run) -> str | None:
    """Store the view that compares the runs below this one, and return its key; none where nothing is to be charted."""
    kind, _, only = run.data.tags.get(CHARTED, "").partition(" ")
    if kind not in _VIEWS:
        return None
    title, metrics, order = _VIEWS[kind]
    nested = f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{run.info.run_id}'"
    state = {
        "searchFilter": f"{nested} and {only}" if only else nested,
        "orderByKey": f"metrics.`{order}`",  # by anything but the date, nested runs are listed one by one
        "orderByAsc": False,
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "compareRunSections": [{"uuid": kind, "name": title, "display": True, "isReordered": False}],
        "compareRunCharts": [_line(metric, kind) for metric in metrics],
    }
    client.set_experiment_tag(run.info.experiment_id, VIEW + run.info.run_id, json.dumps(state))
    return str(run.info.run_id)


def _line(metric: str, section: str) -> dict[str, Any]:
    """A chart as the UI of MLflow keeps it."""
    return {
        "type": "LINE",
        "uuid": metric,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "runsCountToCompare": 10,
        "lineSmoothness": 0,
        "scaleType": "linear",
        "xAxisKey": "step",
        "xAxisScaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "useGlobalLineSmoothing": False,
        "useGlobalXaxisKey": False,
        "displayPoints": True,
        "range": {},
    }

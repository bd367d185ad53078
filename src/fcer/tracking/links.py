"""Addresses of pages in the MLflow UI that open where they should."""

from urllib.parse import quote

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

from fcer.tracking.runs import TrackedRun
from fcer.tracking.server import tracking_uri

__all__ = ["link_to"]

_SERVED = "http://127.0.0.1:5000"
"""Where `make ui` shows a store that has no server."""
_TRAINING = "workflowType=machine_learning"
"""Without it this version of MLflow opens its pages for language models."""


def link_to(run: TrackedRun | str, *, below: bool = False) -> str:
    """The address of a run's page; with `below`, of the charts that compare the runs nested below it.

    A server that does not answer is named by its own address.
    """
    run_id = run if isinstance(run, str) else run.id
    uri = tracking_uri()
    served = uri.rstrip("/") if uri.startswith(("http://", "https://")) else _SERVED
    try:
        experiment = mlflow.MlflowClient().get_run(run_id).info.experiment_id
    except MlflowException:
        return served
    if below:
        nested = quote(f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{run_id}'")
        return f"{served}/#/experiments/{experiment}/runs?{_TRAINING}&compareRunsMode=CHART&searchFilter={nested}"
    return f"{served}/#/experiments/{experiment}/runs/{run_id}?{_TRAINING}"

"""Addresses of pages in the MLflow UI that open where they should."""

from urllib.parse import quote

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

from fcer.tracking.server import EXPERIMENT, prepare_client, tracking_uri
from fcer.tracking.views import CHARTED, VIEW

__all__ = ["first_page", "link_to", "page_of"]

_SERVED = "http://127.0.0.1:5000"
"""Where `make ui` shows a store that has no server."""
_TRAINING = "workflowType=machine_learning"
"""Without it this version of MLflow opens its pages for language models."""


def link_to(run_id: str, *, below: bool = False) -> str:
    """The address of a run's page; with `below`, of its view, or of the charts of the runs nested below it.

    A server that does not answer is named by its own address.
    """
    try:
        client = mlflow.MlflowClient()
        experiment = client.get_run(run_id).info.experiment_id
        if not below:
            return _served() + page_of(experiment, run_id)
        if VIEW + run_id in client.get_experiment(experiment).tags:
            return f"{_served()}{page_of(experiment)}&compareRunsMode=CHART&viewStateShareKey={run_id}"
    except MlflowException:
        return _served()
    nested = quote(f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{run_id}'")
    return f"{_served()}{page_of(experiment)}&compareRunsMode=CHART&searchFilter={nested}"


def page_of(experiment: str, run_id: str = "") -> str:
    """The page of a run, or the list of an experiment's, as it stands after the server's address."""
    return f"/#/experiments/{experiment}/runs{f'/{run_id}' if run_id else ''}?{_TRAINING}"


def first_page() -> str:
    """Where to begin: the charts of the latest evaluation, else the list of our runs; the server's address at least."""
    prepare_client()
    client = mlflow.MlflowClient()
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is None:
        return _served()
    newest = ["attributes.start_time DESC"]
    wanted = f"tags.`{CHARTED}` LIKE 'sweep%' and attributes.status = 'FINISHED'"
    for run in client.search_runs([found.experiment_id], wanted, max_results=1, order_by=newest):
        return link_to(run.info.run_id, below=True)
    return _served() + page_of(found.experiment_id)


def _served() -> str:
    uri = tracking_uri()
    return uri.rstrip("/") if uri.startswith(("http://", "https://")) else _SERVED

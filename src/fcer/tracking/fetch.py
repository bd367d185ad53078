"""Evaluations that were logged, back on disk: by their runs, or all of an experiment."""

from collections.abc import Sequence
from pathlib import Path

import mlflow
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

from fcer.errors import ConfigError, FcerError
from fcer.tracking.server import prepare_client, tracking_uri

__all__ = ["fetch_results", "has_finished_run", "known_values"]


def fetch_results(out: Path, *, runs: Sequence[str] = (), experiment: str | None = None) -> list[Path]:
    """Download the results of `runs`, or of the latest evaluation of each year of `experiment`, into folders of `out`.

    An evaluation is a run that keeps `results/evaluation.json`.
    """
    prepare_client()
    client = mlflow.MlflowClient()
    try:
        ids = list(runs) if runs else [run.info.run_id for run in _latest(client, experiment or "")]
        return [_download(client, run_id, out) for run_id in ids]
    except MlflowException as error:
        reason = " ".join(str(error).split())[:200]
        raise FcerError(f"MLflow at {tracking_uri()} failed ({reason}); check the address and the names") from error


def _latest(client: mlflow.MlflowClient, experiment: str) -> list[Run]:
    """The newest finished evaluations of the newest one's kind, as many as it takes for each year to be in one."""
    found = client.get_experiment_by_name(experiment)
    if found is None:
        known = ", ".join(one.name for one in client.search_experiments())
        raise ConfigError(f"experiment: there is no {experiment!r} at {tracking_uri()}; there are {known}")
    wanted = "attributes.status = 'FINISHED' and tags.`fcer.years` != ''"
    runs = client.search_runs([found.experiment_id], wanted, order_by=["attributes.start_time DESC"])
    if not runs:
        raise ConfigError(f"experiment: {experiment!r} holds no finished evaluation; run fcer evaluate first")
    chosen: list[Run] = []
    seen: set[str] = set()
    for run in runs:
        years = set(run.data.tags["fcer.years"].split())
        if _kind(run) != _kind(runs[0]) or years <= seen:
            continue
        if years & seen:
            named = " ".join(one.info.run_id for one in (*chosen, run))
            raise ConfigError(
                f"experiment: years {' '.join(sorted(years & seen))} are in a newer evaluation too, others of the same "
                f"run are not; say which to join with --runs, of {named}"
            )
        chosen.append(run)
        seen |= years
    return chosen


def _kind(run: Run) -> dict[str, str]:
    """What evaluations must share to be years of one study; the test year and its backbone are each one's own."""
    own = ("year", "backbone_", "predictions", "anchor_px", "mlflow.")
    return {key: value for key, value in run.data.params.items() if not key.startswith(own)}


def has_finished_run(tag: str, value: str) -> bool:
    """Whether some finished run of the store carries this tag; a store that does not answer has none."""
    prepare_client()
    client = mlflow.MlflowClient()
    try:
        experiments = [one.experiment_id for one in client.search_experiments()]
        wanted = f"attributes.status = 'FINISHED' and tags.`{tag}` = '{value}'"
        return bool(client.search_runs(experiments, wanted, max_results=1))
    except MlflowException:
        return False


def known_values(run_id: str, tag: str) -> set[str]:
    """What the finished runs below a run have under this tag; a store that does not answer has none."""
    client = mlflow.MlflowClient()
    try:
        experiment = client.get_run(run_id).info.experiment_id
        wanted = f"attributes.status = 'FINISHED' and tags.`{MLFLOW_PARENT_RUN_ID}` = '{run_id}' and tags.`{tag}` != ''"
        found: set[str] = set()
        page: str | None = None
        while True:
            runs = client.search_runs([experiment], wanted, page_token=page)
            found |= {run.data.tags[tag] for run in runs}
            page = runs.token
            if not page:
                return found
    except MlflowException:
        return set()


def _download(client: mlflow.MlflowClient, run_id: str, out: Path) -> Path:
    folder = out / run_id
    folder.mkdir(parents=True, exist_ok=True)
    if not any(file.path == "results/evaluation.json" for file in client.list_artifacts(run_id, "results")):
        raise ConfigError(f"runs: {run_id} keeps no evaluation; give ids of runs of fcer evaluate")
    return Path(client.download_artifacts(run_id, "results", str(folder)))

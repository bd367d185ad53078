"""A real MLflow server that can be killed and started again, and what a run looks like from outside."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import mlflow
from mlflow.server import constants

from mlflow_stores import fresh_store


class Server:
    """`mlflow server` on a port of its own, with its store in `folder`: what that command starts, without the command.

    Importing it takes as long as the server does; the services of compose.yaml are tested with it.
    """

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._store = f"sqlite:///{store}" if store else fresh_store(folder)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        call = [sys.executable, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(self.port)]
        call += ["mlflow.server.fastapi_app:app"]
        environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
        environment |= {
            constants.BACKEND_STORE_URI_ENV_VAR: self._store,
            constants.REGISTRY_STORE_URI_ENV_VAR: self._store,
            constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
            constants.ARTIFACTS_DESTINATION_ENV_VAR: str(self._folder / "artifacts"),
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
            "_MLFLOW_SGI_NAME": "uvicorn",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                call, cwd=self._folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 300
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, (
                self._folder / "server.log"
            ).read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def runs_of(uri: str, experiment: str = "fcer") -> list[Any]:
    client = mlflow.MlflowClient(uri)
    return list(client.search_runs([client.get_experiment_by_name(experiment).experiment_id]))


def family(uri: str, top: str) -> dict[str, dict[str, Any]]:
    """All that MLflow tells of a run and its children, by name and without what differs from run to run."""
    client = mlflow.MlflowClient(uri)
    runs = [run for run in runs_of(uri) if top in (run.info.run_id, run.data.tags.get("mlflow.parentRunId"))]
    names = {run.info.run_id: run.info.run_name for run in runs}
    assert len(set(names.values())) == len(runs), "each name once"
    return {run.info.run_name: _portrait(client, run, names) for run in runs}


def _portrait(client: mlflow.MlflowClient, run: Any, names: dict[str, str]) -> dict[str, Any]:
    run_id = run.info.run_id
    curves = {
        key: sorted((metric.step, metric.value) for metric in client.get_metric_history(run_id, key))
        for key in run.data.metrics
        if not key.startswith("system/")
    }
    files = [file for folder in (None, "checkpoint") for file in client.list_artifacts(run_id, folder)]
    contents = {f.path: Path(client.download_artifacts(run_id, f.path)).read_text() for f in files if not f.is_dir}
    return {
        "status": run.info.status,
        "params": run.data.params,
        "curves": curves,
        "tags": {key: names.get(value, value) for key, value in run.data.tags.items() if key != "fcer.journal"},
        "contents": contents,
        "datasets": [(d.dataset.name, d.dataset.digest, d.tags[0].value) for d in run.inputs.dataset_inputs],
        "watched": "system/cpu_utilization_percentage" in run.data.metrics,
        "ended": run.info.end_time is not None and run.info.end_time >= run.info.start_time,
    }

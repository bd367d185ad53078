"""One run for each command, with all that is needed to know later what it was: settings, data, code, environment."""

import json
import logging
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
from mlflow.data.meta_dataset import MetaDataset
from mlflow.data.sources import LocalArtifactDatasetSource  # type: ignore[attr-defined]  # made at run time
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

import fcer
from fcer.errors import FcerError

__all__ = ["TrackedRun", "tracked_run"]

EXPERIMENT = "fcer"
_PACKAGES = ("torch", "mlflow", "optuna", "numpy", "scipy", "scikit-learn", "pandas", "h5py")


class TrackedRun:
    """A run to log to."""

    def __init__(self, run_id: str) -> None:
        self.id = run_id
        self._client = mlflow.MlflowClient()

    def params(self, values: Mapping[str, Any]) -> None:
        """Log what is not there yet: MLflow has logged the parameters of `mlflow run` in its own spelling."""
        known = self._client.get_run(self.id).data.params
        new = [Param(key, str(value)) for key, value in values.items() if key not in known]
        self._client.log_batch(self.id, params=new)

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log some metrics of one step in one call."""
        now = int(time.time() * 1000)
        self._client.log_batch(self.id, metrics=[Metric(key, value, now, step) for key, value in values.items()])

    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags."""
        for key, value in values.items():
            self._client.set_tag(self.id, key, value)

    def file(self, path: Path, folder: str | None = None) -> None:
        """Keep a file with the run."""
        self._client.log_artifact(self.id, str(path), folder)

    def text(self, text: str, name: str) -> None:
        """Keep a text with the run."""
        self._client.log_text(self.id, text, name)

    def dataset(self, root: Path, fingerprint: str, context: str) -> None:
        """Record which data was used: where it lay, and the fingerprint of its content."""
        source = LocalArtifactDatasetSource(str(root.resolve()))
        data = MetaDataset(source=source, name=root.name, digest=fingerprint)  # type: ignore[abstract]
        mlflow.log_input(data, context=context)


@contextmanager
def tracked_run(
    name: str, *, settings: Mapping[str, Any], config: str = "", parent: TrackedRun | None = None
) -> Iterator[TrackedRun]:
    """A run in the experiment `fcer`, or the one that `mlflow run` has started for this process.

    Nested below `parent` where one is given; the parent alone keeps the whole `config` and the environment.
    """
    # Tables that are created and experiments that are new are no news
    for chatty in ("mlflow", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    with _said_plainly():
        if parent is None and not {"MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"} & os.environ.keys():
            mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT))
        started = mlflow.start_run(run_name=name, nested=parent is not None)
    with _said_plainly(), started as active:
        run = TrackedRun(active.info.run_id)
        run.params(settings)
        run.tags({"fcer.version": fcer.__version__, "fcer.command": name.split()[0]})
        if parent is None:
            run.text(config, "config.yaml")
            run.text(json.dumps(_environment(), indent=1), "environment.json")
        yield run


@contextmanager
def _said_plainly() -> Iterator[None]:
    """What goes wrong in MLflow as one sentence: computing keeps its results on disk, so nothing is lost."""
    try:
        yield
    except MlflowException as error:
        reason = " ".join(str(error).split())[:200]
        raise FcerError(
            f"MLflow at {mlflow.get_tracking_uri()} failed ({reason}); what is complete is on disk: "
            "start the server or set MLFLOW_TRACKING_URI, then start the same command again"
        ) from error


def _environment() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        # The package itself need not be installed: MLflow's own environment runs the checkout
        "fcer": fcer.__version__,
        "packages": {name: version(name) for name in _PACKAGES},
    }

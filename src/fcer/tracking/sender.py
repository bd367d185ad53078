"""A journal's entries as calls to MLflow: the same for a command that goes on and for one that is logged later.

An entry may reach MLflow twice, where only the answer was lost: the second time changes nothing there.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.data.meta_dataset import MetaDataset
from mlflow.data.schema import TensorDatasetSchema
from mlflow.data.sources import LocalArtifactDatasetSource  # type: ignore[attr-defined]  # made at run time
from mlflow.entities import Dataset, DatasetInput, Experiment, InputTag, LifecycleStage, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.types.schema import Schema, TensorSpec
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT, MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE

from fcer.errors import FcerError
from fcer.runtime.files import file_digest
from fcer.tracking.journal import Entry, Journal
from fcer.tracking.notes import about_experiment, with_links
from fcer.tracking.server import EXPERIMENT

__all__ = ["RefusedError", "Sender", "UnreachableError", "file_state"]

_REFUSALS = {
    "BAD_REQUEST",
    "INVALID_PARAMETER_VALUE",
    "INVALID_STATE",
    "RESOURCE_ALREADY_EXISTS",
    "RESOURCE_DOES_NOT_EXIST",
}
"""Errors that say something about the entry, not about the server."""
_CHANNELS = 23
"""Raw channels of a day, in files of fires (days, channels, rows, columns)."""
_JOURNAL_TAG = "fcer.journal"
_METRICS_A_CALL, _OTHERS_A_CALL = 1000, 100  # MLflow's own limits


class UnreachableError(Exception):
    """The server does not answer, or not as it should: nothing else can be sent now."""


class RefusedError(Exception):
    """This entry cannot be logged; others can."""


class Sender:
    """Sends the entries of one journal and notes in it what has arrived."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._experiments: dict[str, str] = {}

    @cached_property
    def _client(self) -> mlflow.MlflowClient:
        # Made with the first call: a store in a file is opened by that, which may fail
        return mlflow.MlflowClient()

    def send(self, entry: Entry, *, again: bool = False) -> None:
        """Log one entry; `again` says that it may have been tried before."""
        started = None
        with _told_apart():
            if entry.op == "start":
                started = self._start(entry, again)
            elif entry.run in self._journal.run_ids:
                self._log(self._journal.run_ids[entry.run], entry)
            else:
                raise RefusedError("its run could not be started")
        self._journal.mark_sent(entry, started)

    def knows(self, run_id: str) -> bool:
        """Whether the server has this run."""
        with _told_apart():
            return self._get(run_id) is not None

    def _log(self, run_id: str, entry: Entry) -> None:
        client, data = self._client, entry.data
        match entry.op:
            case "params":
                # MLflow has logged the parameters of `mlflow run` in its own spelling: only others are new
                known = client.get_run(run_id).data.params
                new = [Param(key, value) for key, value in data.items() if key not in known]
                for part in _parts(new, _OTHERS_A_CALL):
                    client.log_batch(run_id, params=part)
            case "metrics":
                # A row may say when it was: else now
                rows = ([*row, entry.at][:4] for row in data["rows"])
                metrics = [Metric(key, value, at, step) for key, value, step, at in rows]
                for part in _parts(metrics, _METRICS_A_CALL):
                    client.log_batch(run_id, metrics=part)
            case "tags":
                tags = [RunTag(key, self._journal.run_id(value)) for key, value in data.items()]
                for part in _parts(tags, _OTHERS_A_CALL):
                    client.log_batch(run_id, tags=part)
            case "origins":
                experiment = client.get_run(run_id).info.experiment_id
                for key, (tag, value) in data.items():
                    # Made elsewhere, or before this store: then there is no run to point to
                    for run in client.search_runs([experiment], f"tags.`{tag}` = '{value}'", max_results=1):
                        client.set_tag(run_id, key, run.info.run_id)
            case "note":
                client.set_tag(run_id, MLFLOW_RUN_NOTE, with_links(client, client.get_run(run_id), data["markdown"]))
            case "text":
                client.log_text(run_id, data["text"], data["name"])
            case "file":
                self._check_unchanged(Path(data["path"]), data["state"])
                client.log_artifact(run_id, data["path"], data["folder"])
            case "dataset":
                client.log_inputs(run_id, [_dataset(**data)])
            case "model":
                from fcer.tracking.student_model import log_student  # needs torch, which few runs do

                log_student(run_id, Path(data["folder"]), data["metrics"], entry.at)
            case "end":
                # A later command may have attached to the run since: then it is that one's to end
                own = self._journal.reference(entry.run)
                if client.get_run(run_id).data.tags.get(_JOURNAL_TAG, own) == own:
                    client.set_terminated(run_id, data["status"], entry.at)
            case _:
                raise RefusedError(f"{entry.op} is unknown to this version of fcer")

    def _start(self, entry: Entry, again: bool) -> str:
        """MLflow's id of the run that begins: of one that is there already, or of a new one."""
        data, client = entry.data, self._client
        own = self._journal.reference(entry.run)
        there = self._get(data["attach"]) if data["attach"] else None
        # One that was deleted in the UI takes nothing any more
        if there and there.info.lifecycle_stage != LifecycleStage.ACTIVE:
            there = None
        misplaced = there is not None and _is_misplaced(there, data["experiment"])
        if there and not misplaced:
            client.update_run(data["attach"], status="RUNNING", name=data["name"])
            client.set_tag(data["attach"], _JOURNAL_TAG, own)
            return str(data["attach"])
        if data.get("reopen") and (killed := self._killed_below(data)):
            client.update_run(killed, status="RUNNING")
            client.set_tag(killed, _JOURNAL_TAG, own)
            return killed
        # what the launcher knows of how a run was started
        kept = there.data.tags.items() if there else ()
        launched = {key: value for key, value in kept if key.startswith(("mlflow.project.", "mlflow.source."))}
        tags = data["tags"] | launched | {_JOURNAL_TAG: own}
        parent = data["parent"] and self._journal.run_id(data["parent"])
        if parent:
            tags[MLFLOW_PARENT_RUN_ID] = parent
        known = self._get(parent) if parent else None
        experiment = known.info.experiment_id if known else self._experiment(data, again or misplaced)
        if again:
            # The server may have made the run and its answer was lost
            found = client.search_runs([experiment], f"tags.`{_JOURNAL_TAG}` = '{own}'")
            if found:
                return str(found[0].info.run_id)
        run_id = str(client.create_run(experiment, entry.at, tags, data["name"]).info.run_id)
        if misplaced:
            self._leave_pointer(data["attach"], data["name"], run_id)
        return run_id

    def _killed_below(self, data: dict[str, Any]) -> str | None:
        """The run of this name that a kill ended below the same parent."""
        parent = self._get(self._journal.run_id(data["parent"]))
        if parent is None:
            return None
        wanted = (
            f"attributes.status = 'KILLED' and attributes.run_name = '{data['name']}' and "
            f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{parent.info.run_id}'"
        )
        found = self._client.search_runs([parent.info.experiment_id], wanted, max_results=1)
        return str(found[0].info.run_id) if found else None

    def _leave_pointer(self, launched: str, name: str, run_id: str) -> None:
        """Let the launcher's run say where ours is. It cannot be deleted: the launcher fails if it cannot end it."""
        client = self._client
        experiment = client.get_run(run_id).info.experiment_id
        note = f"Started without `--experiment-name`: see [its run](#/experiments/{experiment}/runs/{run_id})."
        client.update_run(launched, name=f"{name}: see {EXPERIMENT}")
        client.log_batch(launched, tags=[RunTag("fcer.run", run_id), RunTag(MLFLOW_RUN_NOTE, note)])
        client.set_terminated(launched)

    def _check_unchanged(self, path: Path, state: str) -> None:
        remedy = f"remove {self._journal.folder} if that run no longer matters"
        if not path.exists():
            raise RefusedError(f"{path} is gone; put it back where it was, or {remedy}")
        if file_state(path) != state:
            raise RefusedError(f"{path} holds something else by now, written by another run; {remedy}")

    def _get(self, run_id: str) -> Any:
        try:
            return self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _experiment(self, data: dict[str, Any], again: bool) -> str:
        if data["experiment_id"] and not again:
            return str(data["experiment_id"])
        # Later the server may be another, where the number would mean something else
        name = data["experiment"]
        if name not in self._experiments:
            found = self._client.get_experiment_by_name(name)
            self._experiments[name] = found.experiment_id if found else self._new_experiment(name)
            if name == EXPERIMENT and not (found and MLFLOW_RUN_NOTE in found.tags):
                about = about_experiment(self._experiments[name])
                self._client.set_experiment_tag(self._experiments[name], MLFLOW_RUN_NOTE, about)
        return self._experiments[name]

    def _new_experiment(self, name: str) -> str:
        try:
            return str(self._client.create_experiment(name))
        except MlflowException as error:
            # Another process that starts at the same time may have been quicker
            found = self._client.get_experiment_by_name(name)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
            return str(found.experiment_id)


def _is_misplaced(run: Run, experiment: str) -> bool:
    """Whether `mlflow run`, told of no experiment, has made a run for us in MLflow's default one."""
    in_default = run.info.experiment_id == "0"
    return in_default and experiment != Experiment.DEFAULT_EXPERIMENT_NAME and _JOURNAL_TAG not in run.data.tags


@contextmanager
def _told_apart() -> Iterator[None]:
    """Whatever sending raises, as one of our two errors with a short reason."""
    outside = sys.exception()
    try:
        yield
    except (RefusedError, UnreachableError):
        raise
    except MlflowException as error:
        if error.error_code in _REFUSALS:
            raise RefusedError(_short(error)) from error
        raise UnreachableError(_short(_root(error, outside))) from error
    except FcerError as error:
        raise RefusedError(_short(error)) from error
    except Exception as error:
        # Broad on purpose: each kind of artifact store has errors of its own, and a lost log must never end computing
        raise UnreachableError(_short(_root(error, outside))) from error


def _root(error: BaseException, outside: BaseException | None) -> BaseException:
    """What went wrong first: five layers of libraries each tell it again, at greater length.

    `outside` was there before: a run that ends because of it is told of, and has nothing to do with MLflow.
    """
    while (earlier := error.__cause__ or error.__context__) and earlier is not outside:
        error = earlier
    return error


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def file_state(path: Path) -> str:
    """What tells whether a file holds the same as before: a hash of its content. Of a folder nothing is told."""
    return file_digest(path) if path.is_file() else ""


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[k : k + size] for k in range(0, len(items), size))


def _dataset(root: str, fingerprint: str, context: str, profile: dict[str, int] | None = None) -> DatasetInput:
    """The data as MLflow keeps it; what has a profile are fires in WildfireSpreadTS's layout."""
    source = LocalArtifactDatasetSource(root)
    data = MetaDataset(source=source, name=Path(root).name, digest=fingerprint)._to_mlflow_entity()  # type: ignore[abstract]
    if profile:
        days = TensorSpec(np.dtype(np.float32), (-1, _CHANNELS, -1, -1), "data")
        schema = json.dumps(TensorDatasetSchema(Schema([days])).to_dict())
        data = Dataset(data.name, data.digest, data.source_type, data.source, schema, json.dumps(profile))
    return DatasetInput(data, [InputTag(MLFLOW_DATASET_CONTEXT, context)])

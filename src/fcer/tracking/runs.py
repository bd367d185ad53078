"""One run for each command, with all that is needed to know later what it was: settings, data, code, environment."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow
from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_ARTIFACTS, MLFLOW_RUN_NOTE

import fcer
from fcer.errors import FcerError
from fcer.pipeline.run_log import RunLog
from fcer.runtime.secrets import masked
from fcer.tracking.fetch import has_finished_run, known_values
from fcer.tracking.journal import Journal
from fcer.tracking.live import LiveLog
from fcer.tracking.provenance import code_version, environment, source_tags
from fcer.tracking.replay import end_killed_runs
from fcer.tracking.sender import RefusedError, UnreachableError, file_state
from fcer.tracking.server import EXPERIMENT, prepare_client, tracking_uri
from fcer.tracking.system_metrics import system_metrics

if TYPE_CHECKING:
    import pandas as pd

    from fcer.evaluation.results import Results

__all__ = ["TrackedRun", "explain_launched", "tracked_run"]

_MOST_ROWS = 20_000
"""Of a table that the UI is to show."""

_code_version = cache(code_version)  # a process runs the code that it was started with


class TrackedRun(RunLog):
    """A run to log to."""

    def __init__(self, log: LiveLog, key: str, about: str = "") -> None:
        self._log = log
        self._key = key
        self._about = about
        """What the run does, and how to have it done again: stands in every note."""
        self._noted: list[str] = []

    @property
    def id(self) -> str:
        """MLflow's id; for a run that MLflow does not know yet, its place in the journal, which `link` takes too."""
        return self._log.journal.run_id(self.reference)

    @property
    def reference(self) -> str:
        """The run's place in its journal."""
        return self._log.journal.reference(self._key)

    def params(self, values: Mapping[str, Any]) -> None:
        """Log what is set and not there yet: MLflow has logged the parameters of `mlflow run` in its own spelling."""
        self._add("params", {key: masked(str(value)) for key, value in values.items() if value is not None})

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log some metrics of one step in one call."""
        self.curves((key, value, step) for key, value in values.items())

    def curves(self, rows: Iterable[tuple[str, float, int]]) -> None:
        """Log any number of metrics (key, value, step) in as few calls as MLflow allows."""
        self._add("metrics", {"rows": [[key, float(value), int(step)] for key, value, step in rows]})

    def dated(self, values: Mapping[str, float], day: date, since: date) -> None:
        """Log some metrics as of a day: the time is its midnight (UTC), the step the number of days since another."""
        step, time_ms = (day - since).days, (day - date(1970, 1, 1)).days * 86_400_000
        self._add("metrics", {"rows": [[key, float(value), step, time_ms] for key, value in values.items()]})

    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags."""
        self._add("tags", {key: masked(value) for key, value in values.items()})

    def note(self, markdown: str = "") -> None:
        """Describe the run, in Markdown, beside what was noted before: what stands on top of its page.

        Links to the runs that it was built from are added; what is too long for MLflow is cut off.
        """
        self._noted += [markdown] if markdown else []
        self._add("note", {"markdown": masked("\n\n".join(filter(None, [*self._noted, self._about])))})

    def link(self, runs: Mapping[str, str]) -> None:
        """Record the ids of runs that this one was built from, by what they gave."""
        journal = self._log.journal
        self.tags({f"fcer.from.{name}": journal.portable(run_id) for name, run_id in runs.items()})

    def link_tagged(self, runs: Mapping[str, tuple[str, str]]) -> None:
        """The same for runs of earlier commands, each by a tag of its own and that tag's value; the latest counts."""
        self._add("origins", {f"fcer.from.{name}": list(tagged) for name, tagged in runs.items()})

    def file(self, path: Path, folder: str | None = None) -> None:
        """Keep a file with the run. It has to stay where it is until MLflow has it."""
        self._add("file", {"path": str(path.resolve()), "state": file_state(path), "folder": folder})

    def text(self, text: str, name: str) -> None:
        """Keep a text with the run."""
        self._add("text", {"text": masked(text), "name": name})

    def tables(self, tables: Mapping[str, "pd.DataFrame"]) -> None:
        """Keep tables that the UI shows and compares, as `mlflow.log_table` writes them; longer ones it cannot show."""
        shown = {f"tables/{name}.json": table for name, table in tables.items() if len(table) <= _MOST_ROWS}
        for path, table in shown.items():
            self.text(table.to_json(orient="split", index=False), path)
        self.tags({MLFLOW_LOGGED_ARTIFACTS: json.dumps([{"path": path, "type": "table"} for path in shown])})

    def dataset(self, root: Path, fingerprint: str, context: str, profile: Mapping[str, int] | None = None) -> None:
        """Record which data was used: where it lay, the fingerprint of its content, and in numbers how much it is."""
        told = {"root": str(root.resolve()), "fingerprint": fingerprint, "context": context}
        self._add("dataset", {**told, "profile": dict(profile or {})})

    def model(self, folder: Path, *, metrics: Mapping[str, float]) -> None:
        """Log the student in `folder` as a model, with the metrics that speak for it."""
        self._add("model", {"folder": str(folder.resolve()), "metrics": {k: float(v) for k, v in metrics.items()}})

    def results(
        self, results: "Results", folder: Path, *, passes: Mapping[str, int], colours: Mapping[str, str]
    ) -> None:
        """Log an evaluation, whose files lie in `folder`; `colours` is how methods are drawn elsewhere."""
        from fcer.tracking.evaluation_runs import log_results  # it has runs of its own below this one

        log_results(self, results, folder, passes=passes, colours=colours)

    @contextmanager
    def child(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        reopen: bool = False,
        attach: str | None = None,
        beside: bool = False,
    ) -> Iterator["TrackedRun"]:
        """A run nested below this one, which ends with the block; it shares this one's journal.

        With `reopen`, one of the name that a kill left there goes on; with `attach`, the earlier run of that id. One
        that stands `beside` is below none.
        """
        start = _start(name, attach=attach, parent=None if beside else self.reference)
        entry = self._log.add(None, "start", {**start, "reopen": reopen})
        with _ended(TrackedRun(self._log, entry.run)) as run:
            _describe(run, name, settings)
            yield run

    def knows(self, tag: str, value: str) -> bool:
        """Whether some finished run of the store carries this tag; a store that does not answer has none."""
        return not self._log.is_lost and has_finished_run(tag, value)

    def known_below(self, tag: str) -> set[str]:
        """What the finished runs below this one have under a tag; a store that does not answer has none."""
        return set() if self._log.is_lost else known_values(self.id, tag)

    def _add(self, op: str, data: Mapping[str, Any]) -> None:
        self._log.add(self._key, op, data)


@contextmanager
def tracked_run(
    name: str,
    *,
    settings: Mapping[str, Any],
    config: str = "",
    work: Path = Path("work"),
    attach: str | None = None,
    about: str = "",
) -> Iterator[TrackedRun]:
    """A command's run in the experiment `fcer`, or the one that `mlflow run` has started for this process.

    All that is logged is first written to a journal below `work`. The run keeps the whole `config` and the
    environment, and watches the machine; `about`, in Markdown, ends its description. With `attach`, the id of an
    earlier run, that one goes on, unless `mlflow run` has started one.
    """
    prepare_client()
    run = _first_run(name, work / "runs", attach, about)
    with _sent(run._log), _ended(run):
        end_killed_runs(work / "runs")
        _describe(run, name, settings)
        if about:
            run.note()
        run.text(config, "config.yaml")
        run.text(json.dumps(environment(), indent=1), "environment.json")
        with system_metrics(run.metrics):
            yield run


def explain_launched(name: str, sentence: str) -> None:
    """Say why in the run that `mlflow run` has begun for a command which ended before it could take it over."""
    run_id = os.environ.pop("MLFLOW_RUN_ID", None)
    if run_id is None:
        return
    with suppress(MlflowException):  # the sentence was printed; a server that is away changes nothing of that
        client = mlflow.MlflowClient()
        client.update_run(run_id, name=name)
        tags = {"fcer.error": sentence, "fcer.command": name, MLFLOW_RUN_NOTE: f"**It failed**: {sentence}"}
        client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])


def _start(name: str, *, attach: str | None = None, parent: str | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "attach": attach,
        "parent": parent,
        "experiment": os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT),
        "experiment_id": os.environ.get("MLFLOW_EXPERIMENT_ID"),
        "tags": source_tags(),
    }


def _first_run(name: str, runs: Path, attach: str | None, about: str) -> TrackedRun:
    """The command's own run. If it cannot be started the command ends here: nothing is computed yet."""
    attach = os.environ.pop("MLFLOW_RUN_ID", None) or attach
    journal = Journal.create(runs, name, tracking_uri())
    try:
        log = LiveLog(journal)
        return TrackedRun(log, log.must_start(_start(name, attach=attach)).run, about)
    except (UnreachableError, RefusedError) as error:
        shutil.rmtree(journal.folder)
        raise FcerError(
            f"MLflow at {journal.uri} failed ({error}), before anything was computed: "
            "start the server or set MLFLOW_TRACKING_URI, then start the same command again"
        ) from error


def _describe(run: TrackedRun, name: str, settings: Mapping[str, Any]) -> None:
    run.params(settings)
    run.tags({"fcer.version": fcer.__version__, "fcer.command": name.split()[0], **_code_version()})


@contextmanager
def _ended(run: TrackedRun) -> Iterator[TrackedRun]:
    """End the run with the block, and say how that ended."""
    try:
        yield run
    except BaseException as error:
        run.tags({"fcer.error": _sentence(error)})
        run.note(f"**It failed**: {_sentence(error)}")
        run._add("end", {"status": "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"})
        raise
    run._add("end", {"status": "FINISHED"})


def _sentence(error: BaseException) -> str:
    """What ended a run, in one line."""
    said = " ".join(str(error).split())
    kind = "" if isinstance(error, FcerError) and said else type(error).__name__
    return ": ".join(part for part in (kind, said) if part)[:1000]


@contextmanager
def _sent(log: LiveLog) -> Iterator[None]:
    """Send what is left at the end of the block; a failure of the block itself is never hidden by one of MLflow."""
    try:
        yield
    except BaseException:
        log.close(strict=False)
        raise
    log.close(strict=True)

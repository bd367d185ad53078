"""The server is killed in the middle of a run and started again: in the end MLflow tells the same."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import mlflow
import pytest

from fcer.commands import log
from fcer.config.resolve import resolve
from fcer.errors import FcerError, FcerWarning
from fcer.tracking import TrackedRun, tracked_run
from mlflow_server import Server, family, runs_of
from mlflow_stores import fresh_store


def wait_until_sent(run: TrackedRun) -> None:
    while run._log.journal.pending:
        time.sleep(0.01)


def command(folder: Path, in_the_middle: Callable[[], None], ids: list[str]) -> None:
    """What a command might log, with the loss before its second member."""
    result = folder / "fold2.txt"
    with tracked_run("train", settings={"lr": 0.1}, config="seed: 0\n", work=folder / "work") as run:
        ids.append(run.id)
        run.metrics({"test/ap": 0.5}, step=2020)
        with run.child("member fold 0", {"fold": 0}) as first:
            first.curves(("val/ap", epoch / 7, epoch) for epoch in range(1200))
            first.dataset(folder / "data", "f" * 32, "train")
            wait_until_sent(first)
            in_the_middle()
            first.tags({"fcer.training_key": "k"})
        run.metrics({"test/ap": 0.75}, step=2021)
        with run.child("member fold 2", {"fold": 2}) as second:
            _second_member(second, first, result, folder)
        with pytest.raises(ValueError, match="no fire"), run.child("member fold 6", {}) as third:
            third.metrics({"val/ap": 0.1}, step=1)
            raise ValueError("no fire")
        run.link({"student": second.id})


def _second_member(second: TrackedRun, first: TrackedRun, result: Path, folder: Path) -> None:
    result.write_text("weights")
    second.metrics({"val/ap": 0.25}, step=1)
    second.dataset(folder / "data", "e" * 32, "validation")
    second.file(result, "checkpoint")
    second.text("é\n", "notes.txt")
    second.link({"first": first.id})


def failing_command(work: Path, lose: Callable[[], None], ids: list[str]) -> None:
    with tracked_run("evaluate", settings={}, work=work) as run:
        ids.append(run.id)
        wait_until_sent(run)
        lose()
        raise ValueError("no fire")


class Told(NamedTuple):
    server: Server
    folder: Path
    undisturbed: str
    disturbed: str
    failing: str
    error: FcerError
    warned: dict[str, list[str]]
    printed: list[str]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """One command in peace, others that the server is lost to; these are logged later, and once more."""
    folder = tmp_path_factory.mktemp("loss")
    runs = folder / "work" / "runs"
    server = Server(tmp_path_factory.mktemp("server"))
    ids: list[str] = []
    printed: list[str] = []
    warned: dict[str, list[str]] = {}

    def lose() -> None:
        with pytest.raises(ValueError, match="no fire"), pytest.warns(FcerWarning) as failing:
            failing_command(folder / "failing", server.kill, ids)
        warned["failing"] = [str(one.message) for one in failing]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", server.uri)
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        patch.setattr("builtins.print", lambda *words: printed.append(" ".join(map(str, words))))
        try:
            server.start()
            command(folder, lambda: None, ids)
            with pytest.raises(FcerError) as raised, pytest.warns(FcerWarning) as disturbed:
                command(folder, lose, ids)
            warned["disturbed"] = [str(one.message) for one in disturbed]
            with pytest.raises(FcerError, match=r"does not answer \(.*\), with \d+ entries left; start the server"):
                log.run(resolve(), runs)
            shutil.copytree(runs, folder / "copy")
            server.start()
            for journals in (runs, runs, folder / "failing" / "runs"):
                log.run(resolve(), journals)
            yield Told(server, folder, *ids, raised.value, warned, printed)
        finally:
            server.kill()


def test_the_loss_is_told_once_and_the_end_says_what_to_do(told: Told):
    (warning,) = told.warned["disturbed"]
    assert warning.startswith(f"MLflow at {told.server.uri} does not answer (")
    assert "Connection refused); going on" in warning
    assert "going on, everything is kept in " in warning and "\n" not in warning
    sentence = str(told.error)
    assert sentence.startswith("the results are complete on disk, but ") and told.error.exit_code == 1
    (journal,) = [path for path in (told.folder / "work" / "runs").iterdir() if str(path) in sentence]
    assert sentence.endswith(f"when the server is back: fcer log {journal}")


def test_logged_later_all_is_as_if_nothing_had_happened(told: Told):
    undisturbed, disturbed = (family(told.server.uri, top) for top in (told.undisturbed, told.disturbed))
    assert disturbed == undisturbed
    statuses = {name: run["status"] for name, run in disturbed.items()}
    members = {"member fold 0": "FINISHED", "member fold 2": "FINISHED", "member fold 6": "FAILED"}
    assert statuses == {"train": "FINISHED", **members}
    assert disturbed["train"]["curves"] == {"test/ap": [(2020, 0.5), (2021, 0.75)]}
    assert disturbed["train"]["tags"]["fcer.from.student"] == "member fold 2"
    assert disturbed["member fold 2"]["contents"] == {"notes.txt": "é\n", "checkpoint/fold2.txt": "weights"}
    assert len(disturbed["member fold 0"]["curves"]["val/ap"]) == 1200


def test_times_are_those_of_the_happening(told: Told):
    runs = {run.info.run_name: run.info for run in runs_of(told.server.uri) if _belongs(run, told.disturbed)}
    starts = [runs[name].start_time for name in ("train", "member fold 0", "member fold 2", "member fold 6")]
    assert starts == sorted(starts) and runs["member fold 6"].end_time <= runs["train"].end_time
    (metric,) = mlflow.MlflowClient(told.server.uri).get_metric_history(runs["member fold 2"].run_id, "val/ap")
    assert runs["member fold 2"].start_time <= metric.timestamp <= runs["member fold 2"].end_time


def _belongs(run: mlflow.entities.Run, top: str) -> bool:
    return top in (run.info.run_id, run.data.tags.get("mlflow.parentRunId"))


def test_it_says_what_it_logged_and_then_that_nothing_is_left(told: Told):
    first, second = told.printed[:2]
    assert "entries logged to " in first and "member fold 2" in first and "train" in first
    assert second == f"nothing left to log in {told.folder / 'work' / 'runs'}"
    assert len(runs_of(told.server.uri)) == 4 + 4 + 1, "none twice"


def test_a_server_that_never_heard_of_it_gets_all_of_it(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The store was lost with the server: what was sent before is sent again."""
    store = fresh_store(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    with pytest.warns(FcerWarning, match=r"does not know train, member fold 0; logged there anew"):
        log.run(resolve(), told.folder / "copy")
    (top,) = [run for run in runs_of(store) if run.info.run_name == "train"]
    assert family(store, top.info.run_id) == family(told.server.uri, told.disturbed)


def test_a_body_that_fails_without_its_server_fails_for_its_own_reason(told: Told):
    first, last = told.warned["failing"]
    assert "does not answer (" in first
    assert re.fullmatch(
        r"MLflow at http.* lacks \d+ entries of this run \(.*Connection .*\); when the server.* fcer log /.*", last
    )
    assert mlflow.MlflowClient(told.server.uri).get_run(told.failing).info.status == "FAILED"

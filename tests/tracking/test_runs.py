"""Tracked runs on a store that answers."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import mlflow
import pytest
from mlflow.projects import _maybe_set_run_terminated
from mlflow.store.artifact.artifact_repository_registry import _artifact_repository_registry
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

import fcer
from fcer.errors import FcerError, FcerWarning
from fcer.pipeline.run_log import RunLog
from fcer.tracking import link_to, tracked_run
from fcer.tracking.journal import FILE, Journal, from_line, is_complete, read_journal, to_line
from fcer.tracking.provenance import code_version
from fcer.tracking.replay import end_killed_runs
from fcer.tracking.runs import TrackedRun
from fcer.tracking.sender import Sender
from mlflow_server import family


def journals(work: Path) -> list[Path]:
    return sorted(path.parent for path in work.glob(f"runs/*/{FILE}"))


def test_a_tracked_run_logs_all_that_a_study_tells():
    assert {name for name in vars(RunLog) if not name.startswith("_")} <= vars(TrackedRun).keys()


def test_a_run_tells_what_it_was(store: str, tmp_path: Path):
    with tracked_run("train", settings={"lr": 0.1, "width": 1}, config="lr: 0.1\n", work=tmp_path) as run:
        run.curves(("fcer/auroc", step / 3000, step) for step in range(2500))
        run.link({"teacher": "0" * 32})
        with run.child("member fold 0", {"fold": 0}) as child:
            child.metrics({"val/ap": float("nan")}, step=3)
    told = family(store, run.id)
    top, member = told["train"], told["member fold 0"]
    assert (top["status"], top["params"]) == ("FINISHED", {"lr": "0.1", "width": "1"})
    assert top["curves"]["fcer/auroc"] == [(step, step / 3000) for step in range(2500)]
    assert top["tags"]["fcer.from.teacher"] == "0" * 32
    assert top["tags"].items() >= {"fcer.version": fcer.__version__, "fcer.command": "train"}.items()
    assert top["contents"]["config.yaml"] == "lr: 0.1\n" and "torch" in top["contents"]["environment.json"]
    assert top["watched"] and not member["watched"], "one watches the machine, however short its run"
    assert top["tags"].keys() >= code_version().keys() and member["tags"].keys() >= code_version().keys()
    assert member["tags"]["mlflow.parentRunId"] == "train" and not member["contents"]
    (folder,) = journals(tmp_path)
    assert is_complete(folder)


def test_a_run_is_described_and_can_be_opened(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with tracked_run("main", settings={"anchor": 4, "out": None}, work=tmp_path) as run:
        run.note("# Study\n" + "x" * 10_000)
        run.params({"storage": "postgresql://u:secret@db/x"})
        with run.child("student 2021", {}) as below:
            below.link({"ensemble": run.id})
            below.note("First.")
            below.note("Second.")
    client = mlflow.MlflowClient(store)
    told = client.get_run(run.id)
    assert told.data.params == {"anchor": "4", "storage": "postgresql://u:***@db/x"}, "what is not set is not logged"
    assert told.data.tags["mlflow.note.content"].startswith("# Study\nxxx")
    (folder,) = journals(tmp_path)
    assert not read_journal(folder).pending, "whoever looks after it later can read what was noted"
    note = client.get_run(below.id).data.tags["mlflow.note.content"]
    page = f"#/experiments/{told.info.experiment_id}/runs/{run.id}?workflowType=machine_learning"
    assert note == f"First.\n\nSecond.\n\n**Built from** [ensemble]({page})"
    experiment = client.get_experiment(told.info.experiment_id)
    assert "`fcer/auroc`" in experiment.tags["mlflow.note.content"]
    page = f"/#/experiments/{experiment.experiment_id}/runs"
    assert link_to(run.id) == f"http://127.0.0.1:5000{page}/{run.id}?workflowType=machine_learning"
    chart = f"http://127.0.0.1:5000{page}?workflowType=machine_learning&compareRunsMode=CHART&searchFilter="
    assert link_to(run.id, below=True).startswith(chart)
    assert unquote(link_to(run.id, below=True)).endswith(f"tags.`mlflow.parentRunId` = '{run.id}'")
    assert link_to("0" * 32) == "http://127.0.0.1:5000"


@pytest.mark.parametrize("asked", ["", "Default"])
def test_a_run_that_mlflow_started_in_its_default_experiment_is_ours_in_fcer(
    asked: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As `mlflow run` does without --experiment-name; what it does at the end must still succeed."""
    client = mlflow.MlflowClient(store)
    launched = client.create_run("0", tags={"mlflow.project.entryPoint": "distill"})
    monkeypatch.setenv("MLFLOW_RUN_ID", launched.info.run_id)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    if asked:
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", asked)
    with tracked_run("distill", settings={}, work=tmp_path) as run, run.child("member fold 0", {}):
        pass
    told = client.get_run(run.id)
    assert client.get_experiment(told.info.experiment_id).name == (asked or "fcer")
    assert told.data.tags["mlflow.project.entryPoint"] == "distill" and told.info.status == "FINISHED"
    _maybe_set_run_terminated(launched, "FINISHED")
    left = client.get_run(launched.info.run_id)
    assert left.info.status == "FINISHED" and (run.id == left.info.run_id) == bool(asked)
    assert left.data.tags.get("fcer.run", run.id) == run.id
    assert left.info.run_name == ("distill" if asked else "distill: see fcer")


def test_a_run_that_mlflow_started_is_gone_on_with(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    client = mlflow.MlflowClient(store)
    experiment = client.create_experiment("other")
    given = client.create_run(experiment).info.run_id
    client.log_param(given, "lr", "1e-1")
    monkeypatch.setenv("MLFLOW_RUN_ID", given)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment)
    with tracked_run("train", settings={"lr": 0.1, "width": 1}, work=tmp_path) as run:
        assert run.id == given and client.get_run(given).info.status == "RUNNING"
        with run.child("member", {}) as child:
            pass
    with tracked_run("train", settings={}, work=tmp_path) as second:
        assert second.id != given, "MLflow started one run, not two"
    told = client.get_run(given)
    assert (told.info.status, told.info.run_name) == ("FINISHED", "train")
    assert told.data.params == {"lr": "1e-1", "width": "1"}
    below = client.get_run(child.id)
    assert below.data.tags["mlflow.parentRunId"] == given and below.info.experiment_id == experiment
    assert client.get_run(second.id).info.experiment_id == experiment


def test_a_model_is_logged_with_its_run(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    logged: list[tuple[str, Path, dict[str, float], int]] = []
    student_model = ModuleType("fcer.tracking.student_model")
    student_model.log_student = lambda *given: logged.append(given)
    monkeypatch.setitem(sys.modules, "fcer.tracking.student_model", student_model)
    with tracked_run("distill", settings={}, work=tmp_path) as run:
        run.model(tmp_path / "student", metrics={"val/auroc": 0.5})
    ((*given, at),) = logged
    assert given == [run.id, tmp_path / "student", {"val/auroc": 0.5}] and at <= time.time() * 1000


@pytest.mark.parametrize(("error", "status"), [(ValueError("no fire"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_a_body_that_fails_ends_its_runs(error: BaseException, status: str, store: str, tmp_path: Path):
    with pytest.raises(type(error)) as raised, tracked_run("train", settings={}, work=tmp_path) as run:
        with run.child("fine", {}):
            pass
        with run.child("broken", {}):
            raise error
    assert raised.value is error
    told = family(store, run.id)
    said = {name: one["tags"].get("fcer.error") for name, one in told.items()}
    sentence = ": ".join(filter(None, (type(error).__name__, str(error))))
    assert said == {"train": sentence, "broken": sentence, "fine": None}
    assert {name: one["status"] for name, one in told.items()} == {
        "train": status,
        "broken": status,
        "fine": "FINISHED",
    }


def test_what_mlflow_refuses_stops_nothing_and_is_told_at_the_end(store: str, tmp_path: Path):
    with (
        pytest.raises(FcerError, match=r"complete on disk, but .* lacks 1 entry .*fcer log /") as raised,
        pytest.warns(FcerWarning, match=r"refuses metrics of train .* going on, everything is kept in /") as warned,
        tracked_run("train", settings={}, work=tmp_path) as run,
    ):
        run.metrics({"no good? name": 1.0})
        run.metrics({"good name": 2.0})
    assert raised.value.exit_code == 1 and len(warned) == 1
    told = family(store, run.id)["train"]
    assert told["curves"] == {"good name": [(0, 2.0)]} and told["status"] == "FINISHED"


def test_a_store_that_is_not_there_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.raises(FcerError, match=r"^MLflow at http://127\.0\.0\.1:9 failed \(.*\), before anything was computed"),
        tracked_run("train", settings={}, work=tmp_path),
    ):
        pytest.fail("nothing may be computed")
    assert not journals(tmp_path)


SLEEPER = """
import sys, time
from pathlib import Path
from fcer.tracking import tracked_run

with tracked_run("train", settings={"lr": 1}, work=Path(sys.argv[1])) as run:
    with run.child("member fold 0", {}) as child:
        while "/" in child.id:  # until MLflow has it
            time.sleep(0.01)
        print(run.id, child.id, flush=True)
        time.sleep(600)
"""


def test_what_a_kill_left_running_is_ended_by_the_next_run(store: str, tmp_path: Path):
    client = mlflow.MlflowClient(store)
    call = [sys.executable, "-c", SLEEPER, str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ids = process.stdout.readline().split()
        (folder,) = journals(tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FcerWarning)
            with tracked_run("first", settings={}, work=tmp_path):
                pass
        assert {client.get_run(run_id).info.status for run_id in ids} == {"RUNNING"}, "it lives"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with (
        pytest.warns(
            FcerWarning, match=rf"{folder.name} was killed with train, member fold 0 open: what no .* is KILLED$"
        ),
        tracked_run("second", settings={}, work=tmp_path),
    ):
        pass
    assert [client.get_run(run_id).info.status for run_id in ids] == ["KILLED", "KILLED"]
    assert is_complete(folder)


def kill(journal: Journal) -> None:
    """Let its process be one that is no more."""
    path = journal.folder / FILE
    first, rest = path.read_text().split("\n", 1)
    written = from_line(first)
    written["process"][1] = 2**22 + 1
    path.write_text(to_line(written) + rest)


def killed_journal(runs: Path, uri: str) -> Journal:
    """One whose process is no more, with a run that the store knows nothing of."""
    journal = Journal.create(runs, "train", uri)
    journal.add(None, "start", {"name": "train", "attach": None, "parent": None, "experiment": "fcer"})
    kill(journal)
    return journal


def test_a_killed_run_that_is_gone_on_with_is_not_ended(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    client = mlflow.MlflowClient(store)
    dead = Journal.create(tmp_path / "runs", "search", store)
    sender = Sender(dead)
    start = {"attach": None, "parent": None, "experiment": "fcer", "experiment_id": None, "tags": {}}
    top = dead.add(None, "start", {**start, "name": "search"})
    trial = dead.add(None, "start", {**start, "name": "trial 0", "parent": dead.reference(top.run)})
    for entry in (top, trial):
        sender.send(entry)
    run_id, trial_id = dead.run_ids[top.run], dead.run_ids[trial.run]
    kill(dead)
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    with (
        pytest.warns(FcerWarning, match=r"was killed with search, trial 0 open: what no other command goes on with is"),
        tracked_run("search", settings={}, work=tmp_path) as run,
    ):
        assert run.id == run_id and client.get_run(run_id).info.status == "RUNNING"
        assert client.get_run(trial_id).info.status == "KILLED"
        assert is_complete(dead.folder)
    assert client.get_run(run_id).info.status == "FINISHED"


def test_a_run_that_was_deleted_is_not_gone_on_with(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    client = mlflow.MlflowClient(store)
    with tracked_run("search", settings={}, work=tmp_path) as first:
        pass
    client.delete_run(first.id)
    monkeypatch.setenv("MLFLOW_RUN_ID", first.id)
    with tracked_run("search", settings={"trials": 5}, work=tmp_path) as second:
        pass
    assert second.id != first.id
    told = client.get_run(second.id)
    assert (told.info.status, told.data.params) == ("FINISHED", {"trials": "5"})


class _OwnError(Exception):
    """As libraries of artifact stores have them: of no family that others know."""


class _BrokenStore(LocalArtifactRepository):
    def __init__(self, artifact_uri: str, *_given: object, **_options: object) -> None:
        super().__init__("unused")

    def log_artifact(self, local_file: str, artifact_path: str | None = None) -> None:
        raise _OwnError("no credentials\nfor the bucket")


def test_an_artifact_store_with_errors_of_its_own_ends_nothing(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(_artifact_repository_registry._registry, "broken", _BrokenStore)
    mlflow.MlflowClient(store).create_experiment("in a bucket", "broken://bucket/artifacts")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "in a bucket")
    computed = False
    with (
        pytest.raises(FcerError, match=r"^the results are complete on disk, but .* \(no credentials for the bucket\)"),
        pytest.warns(FcerWarning, match=r"does not answer \(no credentials for the bucket\); going on"),
        tracked_run("train", settings={}, work=tmp_path),
    ):
        computed = True
    assert computed


def test_what_cannot_be_ended_is_told_once(store: str, tmp_path: Path):
    journal = killed_journal(tmp_path, store)
    with pytest.warns(
        FcerWarning, match=rf"but MLflow was not told .*2 entries left: fcer log .*{journal.folder.name}"
    ):
        end_killed_runs(tmp_path)
    assert [entry.op for entry in read_journal(journal.folder).pending.values()] == ["start", "end"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FcerWarning)
        end_killed_runs(tmp_path)


def test_journals_for_another_server_are_left_alone(store: str, tmp_path: Path):
    path = killed_journal(tmp_path, "http://another").folder / FILE
    before = path.read_bytes()
    end_killed_runs(tmp_path)
    assert path.read_bytes() == before


def test_journals_that_are_sent_and_old_are_removed(store: str, tmp_path: Path):
    days = 24 * 3600
    made = {}
    for name, age, complete in [("old", 31, True), ("young", 29, True), ("unsent", 31, False), ("used", 31, True)]:
        journal = made[name] = Journal.create(tmp_path, name, store)
        if not complete:
            journal.add(None, "start", {"name": name})
        journal.release()
        if name == "used":
            (journal.folder / "notes.txt").write_text("mine")
        then = time.time() - age * days
        os.utime(journal.folder / FILE, (then, then))
    end_killed_runs(tmp_path)
    assert {name for name, journal in made.items() if journal.folder.exists()} == {"young", "unsent", "used"}

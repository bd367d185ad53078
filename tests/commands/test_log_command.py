"""`fcer log` on journals of commands that could not send all of what they logged."""

from pathlib import Path

import mlflow
import pytest

from fcer.commands import log
from fcer.config.resolve import resolve
from fcer.errors import FcerError, FcerWarning, InputError
from fcer.tracking.journal import FILE, Journal, from_line, is_complete, to_line
from fcer.tracking.sender import file_state
from mlflow_stores import fresh_store

START = {"attach": None, "parent": None, "experiment": "fcer", "experiment_id": None, "tags": {}}


@pytest.fixture(scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fresh_store(tmp_path_factory.mktemp("store"))


@pytest.fixture
def client(_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> mlflow.MlflowClient:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", _store)
    monkeypatch.chdir(tmp_path)
    return mlflow.MlflowClient(_store)


def unsent(runs: Path, name: str) -> Journal:
    """The journal of a command that MLflow heard nothing of."""
    journal = Journal.create(runs, name, "http://gone")
    journal.add(None, "start", {**START, "name": name}, at=1000)
    journal.add("1", "metrics", {"rows": [["val/ap", 0.5, 1], ["val/ap", 0.75, 2]]}, at=2000)
    return journal


def ended(runs: Path, name: str) -> Journal:
    journal = unsent(runs, name)
    journal.add("1", "end", {"status": "FINISHED"}, at=3000)
    journal.release()
    return journal


def the_run(client: mlflow.MlflowClient, name: str) -> mlflow.entities.Run:
    experiment = client.get_experiment_by_name("fcer").experiment_id
    (run,) = [run for run in client.search_runs([experiment]) if run.info.run_name == name]
    return run


def test_one_journal_by_its_path_or_its_name(client: mlflow.MlflowClient, capsys: pytest.CaptureFixture[str]):
    journal = ended(Path("work/runs"), "train")
    log.run(resolve(), Path(journal.folder.name))
    log.run(resolve(), journal.folder)
    assert capsys.readouterr().out.splitlines() == [
        f"{journal.folder.name}: 3 entries logged to train",
        f"nothing left to log in {journal.folder}",
    ]
    run = the_run(client, "train")
    assert (run.info.start_time, run.info.end_time, run.info.status) == (1000, 3000, "FINISHED")
    assert [metric.value for metric in client.get_metric_history(run.info.run_id, "val/ap")] == [0.5, 0.75]


def test_every_journal_of_a_folder(client: mlflow.MlflowClient, capsys: pytest.CaptureFixture[str]):
    journals = [ended(Path("runs"), name) for name in ("search", "report")]
    writing = unsent(Path("runs"), "distill")
    log.run(resolve(), Path("runs"))
    said = capsys.readouterr().out
    for journal, name in zip(journals, ("search", "report"), strict=True):
        assert f"{journal.folder.name}: 3 entries logged to {name}\n" in said
        assert is_complete(journal.folder)
    assert f"{writing.folder.name}: left alone, since its command is still at work\n" in said


def test_a_killed_command_is_logged_as_far_as_it_came(client: mlflow.MlflowClient):
    path = unsent(Path("runs"), "killed").folder / FILE
    first, *rest = path.read_text().splitlines(keepends=True)
    written = from_line(first)
    written["process"][1] = 2**22 + 1
    path.write_text(to_line(written) + "".join(rest) + '{"n": 3, "run": "1", "op": "me')
    with pytest.warns(FcerWarning, match=r"journal\.jsonl: the last line was cut short .* it is left out"):
        log.run(resolve(), path.parent)
    run = the_run(client, "killed")
    assert (run.info.status, run.data.metrics) == ("KILLED", {"val/ap": 0.75})
    assert run.info.end_time == pytest.approx(path.stat().st_mtime * 1000, abs=60_000), "when it was last heard of"


def test_a_run_that_was_made_before_its_answer_was_lost_is_found(client: mlflow.MlflowClient):
    journal = ended(Path("runs"), "answerless")
    experiment = client.get_experiment_by_name("fcer") or client.get_experiment(client.create_experiment("fcer"))
    tags = {"fcer.journal": f"{journal.folder.name}/1"}
    made = client.create_run(experiment.experiment_id, tags=tags, run_name="answerless")
    log.run(resolve(), journal.folder)
    assert the_run(client, "answerless").info.run_id == made.info.run_id


def rewrite(path: Path) -> None:
    path.write_text("0.7")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Path.unlink, r"is gone; put it back where it was, or remove /.* if that run no longer matters"),
        (rewrite, r"holds something else by now, written by another run; remove /.* if that run no longer matters"),
    ],
)
def test_a_file_that_is_not_the_same_is_not_logged(
    change, reason: str, client: mlflow.MlflowClient, capsys: pytest.CaptureFixture[str]
):
    result = Path("sweep.csv").resolve()
    result.write_text("0.5")
    journal = unsent(Path("runs"), f"evaluate {change.__name__}")
    journal.add("1", "file", {"path": str(result), "state": file_state(result), "folder": None})
    journal.add("1", "end", {"status": "FINISHED"})
    journal.release()
    change(result)
    with pytest.raises(FcerError, match=rf"^1 entry could not be logged, the first being .*, file of .*{reason}"):
        log.run(resolve(), journal.folder)
    assert "3 entries logged" in capsys.readouterr().out, "all the rest is"
    result.write_text("0.5")  # the same content, at another time
    log.run(resolve(), journal.folder)
    run = the_run(client, f"evaluate {change.__name__}")
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["sweep.csv"]
    assert is_complete(journal.folder)


def test_a_model_whose_files_are_gone_holds_up_nothing_else(client: mlflow.MlflowClient):
    journal = unsent(Path("runs"), "distill")
    journal.add("1", "model", {"folder": str(Path("student").resolve()), "metrics": {}})
    journal.add("1", "end", {"status": "FINISHED"})
    journal.release()
    with pytest.raises(FcerError, match=r"1 entry could not be logged, .*, model of distill: .*student"):
        log.run(resolve(), journal.folder)
    assert the_run(client, "distill").info.status == "FINISHED"


def test_a_folder_without_a_journal_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^/.*: holds no journal\.jsonl; name a folder in WORK/runs"):
        log.run(resolve(), tmp_path)
    for folder in ("nowhere", "work/runs"):
        with pytest.raises(InputError, match=rf"^{folder}: there is no such folder, nor is it one in work/runs; name"):
            log.run(resolve(), Path(folder))

"""`fcer distill` end to end: the student in a real MLflow store, found again, and finished after kill -9."""

import json
import re
import shutil
import signal
import time
from pathlib import Path

import mlflow
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fcer.data.catalog import open_catalog
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student_files import backbone_file, head_file, load_student, read_head_info
from mlflow_server import Server
from study_cases import HEAD, TINY, fcer, start


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("distilled")
    done = fcer(folder, "distill", *TINY, *HEAD)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


@pytest.fixture
def copied(distilled: tuple[Path, str], tmp_path: Path) -> Path:
    """A folder with the same store, fires and members, but neither cache nor student."""
    shutil.copy(distilled[0] / "mlflow.db", tmp_path)
    shutil.copytree(distilled[0] / "work", tmp_path / "work", ignore=shutil.ignore_patterns("features", "students"))
    return tmp_path


def student_of(folder: Path) -> Path:
    (student,) = (folder / "work" / "students").glob("*")
    return student


def client_of(folder: Path) -> mlflow.MlflowClient:
    return mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db", f"sqlite:///{folder}/mlflow.db")


def runs_of(folder: Path, name: str) -> list[mlflow.entities.Run]:
    client = client_of(folder)
    experiment = client.get_experiment_by_name("fcer").experiment_id
    return [run for run in client.search_runs([experiment]) if run.info.run_name in (name, f"{name} 2021")]


def test_it_says_what_it_does(distilled: tuple[Path, str]):
    folder, out = distilled
    assert "2021: 3 members, backbone fold" in out and "feature cache: " in out
    info = read_head_info(student_of(folder))
    assert f"student 2021: validation AUROC {info.val_auroc:.3f} within 4 px, best epoch {info.epoch} of 4\n" in out
    assert out.endswith("next: fcer evaluate with the same options, or make ui to see the runs\n")


def test_the_run_has_curves_settings_data_and_lineage(distilled: tuple[Path, str], monkeypatch):
    folder, out = distilled
    # MLflow lists a run's models by the store that is set, whatever the client's is
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
    (run,) = runs_of(folder, "distill")
    client = client_of(folder)
    assert run.info.status == "FINISHED"
    for metric in ("train/loss", "val/loss", "val/auroc", "train/lr"):
        assert [m.step for m in client.get_metric_history(run.info.run_id, metric)] == [1, 2, 3, 4]
    history = json.loads((student_of(folder) / "history.json").read_text())["epochs"]
    logged = [m.value for m in client.get_metric_history(run.info.run_id, "val/auroc")]
    assert logged == [record["score"] for record in history]
    assert run.data.metrics["best/val_auroc"] == max(logged)
    info = read_head_info(student_of(folder))
    assert run.data.metrics["best/val_auroc_low"] == info.val_auroc_low < info.val_auroc_high
    assert run.data.metrics["best/val_auroc_high"] == info.val_auroc_high
    (backbone,) = re.findall(r"backbone fold(\d+)", out)
    assert run.data.tags["fcer.val_years"] == {"0": "2020", "2": "2019", "6": "2018"}[backbone]
    assert any(name.startswith("system/") for name in run.data.metrics)
    assert (run.data.params["head_lr"], run.data.params.get("head_loss")) == ("0.05", None)
    files = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"config.yaml", "environment.json", "student"} <= files
    inside = {file.path for file in client.list_artifacts(run.info.run_id, "student")}
    assert {"student/head.safetensors", "student/history.json"} < inside, "and the model of that name"
    assert {tag.value for data in run.inputs.dataset_inputs for tag in data.tags} == {"train", "validation"}
    assert "mlflow.source.git.commit" in run.data.tags and run.data.tags["fcer.version"]
    for fold in (0, 2, 6):
        (member,) = runs_of(folder, f"member fold {fold}")
        assert run.data.tags[f"fcer.from.fold{fold}"] == member.info.run_id


def test_the_loaded_model_answers_what_the_student_in_memory_does(distilled: tuple[Path, str], monkeypatch):
    folder, _ = distilled
    student = load_student(student_of(folder))
    fire = open_catalog(next((folder / "work").glob("synthetic-*")), [2021]).fires[0]
    raw = fire.read(slice(0, 5), range(23))[None]
    expected = predict_days(student, raw)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
    model = mlflow.pyfunc.load_model("models:/fcer-student@champion")
    for days in (raw, raw[:, :, needed_channels(student)]):
        answer = model.predict(days)
        assert set(answer) == {"probability", "uncertainty", "calibrated_probability", "zone", "guarantees"}
        assert np.array_equal(answer["probability"], expected.probability_BHW.numpy())
        assert np.array_equal(answer["uncertainty"], expected.uncertainty_BHW.numpy())
    twice = model.predict(np.concatenate([raw, raw]))["uncertainty"]
    np.testing.assert_allclose(twice[1], expected.uncertainty_BHW[0], atol=1e-5)
    (spec,) = model.metadata.signature.inputs.inputs
    assert spec.shape == (-1, -1, -1, -1, -1), "the student itself says how many days it takes"
    outputs = [output.name for output in model.metadata.signature.outputs.inputs]
    assert outputs == ["probability", "uncertainty", "calibrated_probability", "zone"]
    assert "standardised inside" in model.metadata.metadata["input"]
    pickles = list(Path(model._model_impl.context.artifacts["student"]).parents[1].rglob("*.pkl"))
    assert not pickles, "nothing in the model has to be unpickled"


def test_it_is_registered_with_its_score_and_the_first_is_champion(distilled: tuple[Path, str]):
    folder, _ = distilled
    client = client_of(folder)
    champion = client.get_model_version_by_alias("fcer-student", "champion")
    assert str(champion.version) == "1"
    info = read_head_info(student_of(folder))
    assert {name: float(champion.tags[name]) for name in info.scores} == info.scores
    chosen_by = {"val_auroc", "val_auroc_low", "val_auroc_high", "val_fires"}
    assert info.scores.keys() == {*chosen_by, "val_auroc_within", "val_nll"}
    assert champion.tags["test_years"] == "2021" and champion.tags["key"] == info.key
    assert champion.run_id == runs_of(folder, "distill")[0].info.run_id


def test_another_learning_rate_reads_the_cache(distilled: tuple[Path, str], tmp_path: Path):
    shutil.copy(distilled[0] / "mlflow.db", tmp_path)
    shutil.copytree(distilled[0] / "work", tmp_path / "work")
    caches = {path: path.stat().st_mtime_ns for path in (tmp_path / "work/cache/features").rglob("*.safetensors")}
    other = [*TINY, *HEAD, "--head-lr", "0.2"]
    done = fcer(tmp_path, "distill", *other)
    assert done.returncode == 0, done.stderr
    assert "trained before" in done.stdout and "feature cache" not in done.stdout
    assert {path: path.stat().st_mtime_ns for path in caches} == caches
    assert len(list((tmp_path / "work" / "students").glob("*"))) == 2
    assert "distilled before" in fcer(tmp_path, "distill", *other).stdout


def test_cache_list_and_clear(copied: Path, distilled: tuple[Path, str]):
    empty = fcer(copied, "cache", "list")
    assert empty.stdout == "no feature cache in work/cache/features; fcer distill makes one\n"
    shutil.copytree(distilled[0] / "work" / "cache" / "features", copied / "work" / "cache" / "features")
    listed = fcer(copied, "cache", "list")
    assert "utae_t5 2021: features of fold" in listed.stdout and "taught by 3 members" in listed.stdout
    assert "1 in work/cache/features, " in listed.stdout and "fcer cache clear removes them" in listed.stdout
    next((copied / "work" / "cache" / "features").glob("*/validation-*")).unlink()
    assert "% complete" in fcer(copied, "cache", "list").stdout
    cleared = fcer(copied, "cache", "clear")
    assert cleared.returncode == 0 and "removed 1, " in cleared.stdout
    assert not list((copied / "work" / "cache" / "features").glob("*"))
    wrong = fcer(copied, "cache", "empty")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


def wait_for(folder: Path, pattern: str, process) -> None:
    deadline = time.monotonic() + 300
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_killed_and_started_again_it_ends_with_the_same_student(copied: Path):
    """While the head is fitted; `make torture` kills it anywhere."""
    longer = [*TINY, "--head-lr", "0.05", "--head-epochs", "150", "--head-patience", "150"]
    process = start(copied, "distill", *longer)
    wait_for(copied, "work/students/*/fit.resume", process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not list(copied.glob("work/students/*/head.safetensors")), "killed while fitting"
    done = fcer(copied, "distill", *longer)
    assert done.returncode == 0, done.stderr
    killed = copied / "killed"
    student_of(copied).rename(killed)
    latest, *_ = runs_of(copied, "distill")
    assert latest.info.status == "FINISHED"
    assert {run.info.status for run in runs_of(copied, "distill")} == {"FINISHED", "KILLED"}, "none is left running"
    assert fcer(copied, "distill", *longer).returncode == 0
    undisturbed = student_of(copied)
    for file in (head_file, backbone_file):
        ours, theirs = load_file(file(killed)), load_file(file(undisturbed))
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert read_head_info(killed) == read_head_info(undisturbed)


def test_trained_along(copied: Path):
    done = fcer(copied, "distill", *TINY, *HEAD, "--freeze", "false")
    assert done.returncode == 0, done.stderr
    info = read_head_info(student_of(copied))
    assert not info.frozen
    member = next((copied / "work" / "checkpoints").glob("*/fold0.safetensors"))
    assert backbone_file(student_of(copied)).read_bytes() != member.read_bytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--head-loss", "l1"], "--head-loss: head_loss is 'l1', but should be one of rmsle, mse, bce"),
        (["--head-hidden", "0"], "--head-hidden: head_hidden is 0, but should be at least 1"),
        (["--views", "0"], "--views: views is 0, but should be at least 1"),
        (["--checkpoints", "nowhere"], "nowhere"),
    ],
)
def test_bad_options_are_one_line(options: list[str], sentence: str, copied: Path):
    done = fcer(copied, "distill", *TINY, *options)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and sentence in done.stderr


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_costs_nothing(copied: Path, tmp_path_factory: pytest.TempPathFactory):
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    remote = {"MLFLOW_TRACKING_URI": server.uri, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    try:
        process = start(copied, "distill", *TINY, *HEAD, "--views", "8", **remote)
        wait_for(copied, "work/cache/features/*/training-*", process)
        server.kill()
        _, err = process.communicate()
        assert process.returncode == 1
        warning, sentence = err.splitlines()
        assert warning.startswith("fcer: warning: MLflow at http://127.0.0.1:") and "everything is kept in" in warning
        assert sentence.startswith("fcer: the results are complete on disk, but MLflow at ")
        remedy = sentence.partition("when the server is back: fcer ")[2].split()
        student = read_head_info(student_of(copied))

        away = fcer(copied, *remedy, **remote)
        assert away.returncode == 1 and away.stderr.count("\n") == 1, "it is still away"
        server.start()
        logged = fcer(copied, *remedy, **remote)
        assert logged.returncode == 0, logged.stderr
        client = mlflow.MlflowClient(server.uri, server.uri)
        experiment = client.get_experiment_by_name("fcer").experiment_id
        (run,) = client.search_runs([experiment], "attributes.run_name = 'distill 2021'")
        assert run.info.status == "FINISHED"
        assert len(client.get_metric_history(run.info.run_id, "val/auroc")) == 4
        champion = client.get_model_version_by_alias("fcer-student", "champion")
        assert champion.run_id == run.info.run_id and float(champion.tags["val_auroc"]) == student.val_auroc
        assert "nothing left to log" in fcer(copied, *remedy, **remote).stdout
    finally:
        server.kill()

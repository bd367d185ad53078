"""`fcer train` end to end, into a real MLflow store."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import pytest

from fcer.models import load_checkpoint, read_info
from study_cases import TINY, fcer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("trained")
    done = fcer(folder, "train", *TINY)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_members_and_persistence_are_printed(trained: tuple[Path, str]):
    _, out = trained
    for fold in (0, 2, 6):
        assert re.search(
            rf"^fold {fold}: validation AP 0\.\d+, best epoch [12] of 2, work/checkpoints/utae_t5-", out, re.M
        )
    number = r"(0|1)\.\d{3}"
    scores = rf"fold 0 {number}, fold 2 {number}, fold 6 {number}, ensemble {number}, persistence {number}"
    assert re.search(rf"^test AP 2021: {scores}$", out, re.M)


def test_checkpoints_say_what_they_are(trained: tuple[Path, str]):
    folder, _ = trained
    for path in folder.glob("work/checkpoints/*/fold*.safetensors"):
        backbone, info = load_checkpoint(path)
        assert (info.arch, info.width, info.test_years) == ("utae_t5", 0.0625, (2021,))
        assert backbone.spec == info.spec and info.training_key
    assert len(list(folder.glob("work/checkpoints/*/*"))) == 6, "three members with their histories"


def test_each_member_is_a_run_with_curves_checkpoint_and_lineage(trained: tuple[Path, str]):
    folder, out = trained
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id])
    assert {run.info.run_name for run in runs} == {"train 2021", "member fold 0", "member fold 2", "member fold 6"}
    assert {run.info.status for run in runs} == {"FINISHED"}
    (parent,) = [run for run in runs if run.info.run_name == "train 2021"]
    printed = float(out.split("persistence ")[1].split()[0])
    assert parent.data.metrics["test/persistence_ap"] == pytest.approx(printed, abs=5e-4)
    assert {"config.yaml", "environment.json"} <= {file.path for file in client.list_artifacts(parent.info.run_id)}
    for run in runs:
        if run is parent:
            continue
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        for metric in ("train/loss", "val/loss", "val/ap", "train/lr"):
            assert [m.step for m in client.get_metric_history(run.info.run_id, metric)] == [1, 2]
        (checkpoint,) = client.list_artifacts(run.info.run_id, "checkpoint")
        assert checkpoint.path == f"checkpoint/fold{run.data.params['fold']}.safetensors"
        contexts = {tag.value for data in run.inputs.dataset_inputs for tag in data.tags}
        assert contexts == {"train", "validation"}
        assert all(len(data.dataset.digest) == 32 for data in run.inputs.dataset_inputs)


def test_a_second_call_trains_nothing(trained: tuple[Path, str]):
    folder, _ = trained
    again = fcer(folder, "train", *TINY)
    assert again.returncode == 0
    assert again.stdout.count("trained before") == 3


def test_evaluate_uses_the_members_and_other_settings_do_not(trained: tuple[Path, str]):
    folder, _ = trained
    done = fcer(folder, "evaluate", *TINY, "--out", "results", "--bootstrap", "0", "--methods", "ensemble")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained before") == 3
    assert "2021: 3 members, backbone fold" in done.stdout and "(median val_lift)" in done.stdout
    assert (folder / "results" / "predictions_2021.npz").exists() and (folder / "results" / "sweep.csv").exists()
    checkpoints = str(next(folder.glob("work/checkpoints/*")))
    other = fcer(folder, "train", *TINY, "--checkpoints", checkpoints, "--member-lr", "0.5")
    assert other.returncode == 2
    assert "holds a member that was trained with other settings or for another fold; remove the file" in other.stderr
    wrong = fcer(folder, "evaluate", *TINY, "--checkpoints", checkpoints, "--features", "all")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "7 channels" in wrong.stderr


def test_killed_and_started_again_it_ends_with_the_same_weights(trained: tuple[Path, str], tmp_path: Path):
    folder, _ = trained
    longer = [*TINY, "--member-epochs", "12", "--fold", "0", "--work", str(folder / "work")]
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    call = [sys.executable, "-m", "fcer", "train", *longer, "--checkpoints", str(killed)]
    process = subprocess.Popen(call, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not list(killed.glob("*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed: use more epochs"
    assert not list(killed.glob("*.safetensors"))
    for checkpoints in (killed, undisturbed):
        done = fcer(folder, "train", *longer, "--checkpoints", str(checkpoints))
        assert done.returncode == 0, done.stderr
    first, second = (path / "fold0.safetensors" for path in (killed, undisturbed))
    assert read_info(first) == read_info(second)
    assert first.read_bytes() == second.read_bytes()


def test_a_tracking_server_that_is_not_there_is_one_line(tmp_path: Path):
    nobody = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    done = fcer(tmp_path, "train", *TINY, **nobody)
    assert done.returncode == 1
    assert done.stderr.startswith("fcer: MLflow at http://127.0.0.1:9 failed (") and done.stderr.count("\n") == 1


def test_a_member_whose_run_was_killed_after_its_file_was_written_gets_a_run(trained: tuple[Path, str]):
    folder, _ = trained
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("fcer").experiment_id
    named = "attributes.run_name = 'member fold 2' and attributes.status = 'FINISHED'"
    for run in client.search_runs([experiment], named):
        client.delete_tag(run.info.run_id, "fcer.checkpoint")
        client.set_terminated(run.info.run_id, "KILLED")
    for _ in range(2):
        assert fcer(folder, "train", *TINY).returncode == 0
        (run,) = client.search_runs([experiment], named)
        assert run.data.metrics.keys() == {"best/val_ap"}
        assert [file.path for file in client.list_artifacts(run.info.run_id, "checkpoint")]

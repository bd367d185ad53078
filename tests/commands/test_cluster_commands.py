"""Commands with `--cluster`: the same files as without, whoever worked on them and whoever was lost on the way."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import mlflow
import numpy as np
import psutil
import pytest

from dask_cluster import HandMadeCluster
from fcer.data.catalog import open_catalog
from study_cases import TINY, besides_few_fires, fcer, start

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
LONGER = [*TINY, "--members", "2", "--member-epochs", "4", "--member-patience", "4"]


def tables(folder: Path) -> dict[str, bytes]:
    """Every table and list of tests below a folder, as it is on disk."""
    files = [path for suffix in ("csv", "md", "tex") for path in folder.rglob(f"*.{suffix}")]
    files = [path for path in files if path.name != "costs.csv"]  # measured times
    return {str(path.relative_to(folder)): path.read_bytes() for path in (*files, *folder.rglob("tests.json"))}


def wait_for(condition: Callable[[], object], process) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1]
        time.sleep(0.05)


def workers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def test_a_training_that_loses_a_worker(tmp_path: Path):
    """`make torture` does the same to whole studies, at random moments."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    with start(ours, "train", *LONGER, "--cluster", "local:2") as process:
        wait_for(lambda: list(ours.glob("work/**/*.resume")), process)  # a member is being trained
        lost, other = workers_of(process)
        lost.kill()
        _, complaints = process.communicate(timeout=300)
    assert process.returncode == 0, complaints
    assert not [line for line in besides_few_fires(complaints) if line.startswith("fcer: ")]
    assert not other.is_running()
    assert fcer(theirs, "train", *LONGER).returncode == 0
    weights = {path.relative_to(theirs): path.read_bytes() for path in theirs.glob("work/checkpoints/*/*.safetensors")}
    assert len(weights) == 2
    assert all((ours / path).read_bytes() == content for path, content in weights.items())
    client = mlflow.MlflowClient(f"sqlite:///{ours}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)
    assert {run.info.status for run in runs} == {"FINISHED"}
    members = [run for run in runs if run.info.run_name.startswith("member fold")]
    assert len(members) == 2
    assert all(len(client.get_metric_history(run.info.run_id, "val/ap")) == 4 for run in members)
    assert all("cluster" not in run.data.params for run in runs), "where it was done decides nothing"


def test_two_workers_by_hand_evaluate(tmp_path: Path):
    files = [GOLDEN / "predictions_2018.npz", GOLDEN / "predictions_2019.npz"]
    call = ["evaluate", "--predictions", *files, "--engine", "shards", "--bootstrap", "50"]
    with HandMadeCluster(tmp_path) as made:
        made.add_worker()
        made.add_worker()
        done = fcer(tmp_path, *call, "--cluster", made.address, "--out", "ours")
        assert done.returncode == 0, done.stderr
    done = fcer(tmp_path, *call, "--out", "theirs")
    assert done.returncode == 0, done.stderr
    expected = tables(tmp_path / "theirs")
    assert len(expected) > 6 and tables(tmp_path / "ours") == expected


def test_fires_are_made_and_converted_on_a_cluster(tmp_path: Path):
    made = ["--years", "2018", "2019", "--fires-per-year", "3", "--image-size", "32", "40", "--fire-days", "3", "4"]
    for out, cluster in (("ours", ["--cluster", "local:2"]), ("theirs", [])):
        done = fcer(tmp_path, "synthesize", "--out", out, *made, "--geotiff", *cluster)
        assert done.returncode == 0 and "6 synthetic fires" in done.stdout, done.stderr
    broken = sorted(Path(tmp_path, "ours", "2019").glob("*/*.tif"))[0]
    broken.write_bytes(b"cut short")
    done = fcer(tmp_path, "convert", "--source", "ours", "--out", "converted", "--cluster", "local:2")
    assert done.returncode == 0 and "5 fires converted" in done.stdout and "1 left out" in done.stdout
    assert done.stderr.startswith(f"left out: {broken.relative_to(tmp_path)}")
    theirs = {fire.name: fire for fire in open_catalog(tmp_path / "theirs").fires}
    for root, count in (("ours", 6), ("converted", 5)):
        fires = open_catalog(tmp_path / root).fires
        assert len(fires) == count
        for fire in fires:
            with h5py.File(fire.path) as ours, h5py.File(theirs[fire.name].path) as expected:
                np.testing.assert_array_equal(ours["data"][:], expected["data"][:])


def test_ctrl_c_ends_workers_and_leaves_what_is_complete(tmp_path: Path):
    many = ["--years", "2018", "--fires-per-year", "900", "--image-size", "96", "96"]
    call = ["synthesize", "--out", "fires", *many, "--cluster", "local:2"]
    with start(tmp_path, *call) as process:
        wait_for(lambda: len(list(tmp_path.glob("fires/2018/fire*.hdf5"))) > 5, process)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert len(workers) >= 2
        # as a terminal does: to all of its processes
        for each in (process.pid, *(worker.pid for worker in workers)):
            os.kill(each, signal.SIGINT)
        _, complaints = process.communicate(timeout=300)
    assert process.returncode == 1
    assert complaints == "fcer: stopped; the same command goes on from what is complete\n"
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert not alive
    complete = list(tmp_path.glob("fires/2018/fire*.hdf5"))
    catalog = open_catalog(tmp_path / "fires")
    assert len(catalog.fires) == len(complete) < 900 and not catalog.problems


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path):
    done = fcer(tmp_path, "synthesize", "--out", "fires", "--cluster", "local:0")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cluster is 'local:0': give a scheduler's address such as tcp://scheduler:8786, or local:N" in done.stderr

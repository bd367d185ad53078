"""`fcer search` end to end: into a real MLflow store, on a real PostgreSQL server where there is one."""

import csv
import ctypes
import io
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import mlflow
import optuna
import psutil
import pytest
import torch
from optuna.trial import TrialState

from fcer.cli import main
from fcer.config.resolve import resolve
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.student_files import read_head_info
from mlflow_stores import fresh_store
from postgres_server import has_postgres, postgres_server

TINY = [
    *("--crop", "32", "--width", "0.0625", "--member-epochs", "2", "--member-batch-size", "4"),
    *("--head-epochs", "60", "--year", "2021", "--workers", "2", "--anchor", "auto"),
]
SPACE = """
head_lr: {float: [0.0001, 1.0], log: true}
head_hidden.layers: {int: [0, 1]}
head_hidden.width: {int: [2, 8], when: {head_hidden.layers: 1}}
head_target: {categorical: [std, entropy]}
"""
ALONE = ["--workers", "1"]
"""Where it is not about workers, each of which imports torch first."""
PASSWORD = "not-to-be-shown"


def arguments_of(*arguments: str) -> list[str]:
    return ["search", "--data", "data", "--space", "space.yaml", *TINY, *arguments]


def search(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process, which has imported all it needs: exit code, what it printed and complained."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("MLFLOW_TRACKING_URI", fresh_store(folder))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in workers: rounding depends on it, and training makes much of that
        code = main(arguments_of(*arguments))
        torch.set_num_threads(threads)
    return code, out.getvalue(), err.getvalue()


@contextmanager
def opened_files(folder: Path) -> Iterator[list[str]]:
    """The names of files of `folder` that any process opens during the block, known after it (Linux' inotify)."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    opened, directory = 0x20, 0x40000000
    assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(folder), opened) >= 0
    names: list[str] = []
    try:
        yield names
        content = os.read(watch, 1 << 20) if select.select([watch], [], [], 0)[0] else b""
        while content:
            _, mask, _, length = struct.unpack_from("iIII", content)
            if not mask & directory:
                names.append(content[16 : 16 + length].rstrip(b"\0").decode())
            content = content[16 + length :]
    finally:
        os.close(watch)


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, list[str], list[str]]]:
    """A finished study: its folder, what it printed, and which files of the test year and of another were opened."""
    folder = tmp_path_factory.mktemp("studied")
    recipe = Recipe(years=(2018, 2019, 2020, 2021), fires_per_year=2, image_size=(32, 40), fire_days=(7, 8), seed=0)
    synthesize(recipe, folder / "data", workers=1)
    (folder / "space.yaml").write_text(SPACE)
    with ExitStack() as stack:
        storage = []
        if has_postgres():
            url = stack.enter_context(postgres_server())
            storage = ["--storage", url.replace("postgres@", f"postgres:{PASSWORD}@")]
        with opened_files(folder / "data" / "2021") as test_year, opened_files(folder / "data" / "2020") as other:
            code, out, err = search(folder, "--trials", "4", *storage)
        assert code == 0, err
        yield folder, out + err, test_year, other


def runs_of(folder: Path, study: str) -> tuple[Any, dict[str, Any]]:
    """The run of a study, and those below it by name."""
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id])
    (parent,) = [run for run in runs if run.data.tags.get("fcer.study") == study]
    below = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len({run.info.run_name for run in below}) == len(below), "each name once"
    return parent, {run.info.run_name: run for run in below}


def table(folder: Path, study: str) -> list[dict[str, str]]:
    with (folder / "work" / "studies" / study / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_no_file_of_the_test_year_is_opened(studied: tuple[Path, str, list[str], list[str]]):
    folder, _, test_year, other = studied
    assert {path.name for path in (folder / "data" / "2020").iterdir()} <= set(other), "the watch works"
    assert list((folder / "data" / "2021").glob("*.hdf5")) and test_year == []


def test_the_study_says_what_it_gained(studied: tuple[Path, str, list[str], list[str]]):
    folder, out, *_ = studied
    rows = table(folder, "head")
    assert [row["counts"] for row in rows] == ["true"] * 4
    assert rows[0]["paper"] == "true" and (rows[0]["head_lr"], rows[0]["head_hidden"]) == ("0.001", "none")
    complete = [row for row in rows if row["state"] == "complete"]
    best = max(complete, key=lambda row: float(row["auroc"]))
    gained = float(best["auroc"]) - float(rows[0]["auroc"])
    assert gained >= 0
    assert f"best of 4 trials: trial {best['number']}, validation AUROC {float(best['auroc']):.4f}, " in out
    assert f"{gained:+.4f} against the paper's setting" in out
    assert "study: 4 of 4 trials done, best AUROC 0." in out


def test_every_trial_is_a_run_below_the_one_of_the_study(studied: tuple[Path, str, list[str], list[str]]):
    folder, *_ = studied
    parent, below = runs_of(folder, "head")
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    rows = table(folder, "head")
    assert {run.info.status for run in (parent, *below.values())} == {"FINISHED"}
    for row in rows:
        run = below[f"trial {row['number']}"]
        assert run.data.tags["fcer.trial_state"] == row["state"]
        epochs = "100" if row["paper"] == "true" else "60"  # the paper's setting is the paper's throughout
        assert (run.data.params["head_lr"], run.data.params["head_epochs"]) == (row["head_lr"], epochs)
        curve = [metric.value for metric in client.get_metric_history(run.info.run_id, "val/auroc")]
        assert max(curve) == pytest.approx(float(row["auroc"]))
        if row["state"] == "complete":
            for metric, column in (("best/val_auroc", "auroc"), ("best/val_auprc", "auprc")):
                assert run.data.metrics[metric] == pytest.approx(float(row[column]))
    best = max((row for row in rows if row["state"] == "complete"), key=lambda row: float(row["auroc"]))
    assert parent.data.metrics["best/trial"] == int(best["number"])
    assert parent.data.metrics["best/val_auroc"] == pytest.approx(float(best["auroc"]))
    assert "val/auroc" not in parent.data.metrics, "no curve of one fit among those of others"
    refit = below[f"refit trial {best['number']}"]
    assert refit.data.metrics["best/val_auroc"] == pytest.approx(float(best["auroc"]), abs=1e-6)
    assert {"best/val_auroc_low", "best/val_auroc_high"} <= refit.data.metrics.keys(), "it can be promoted"
    assert refit.data.params["head_lr"] == best["head_lr"] and "fcer.student" in refit.data.tags
    assert parent.data.metrics["paper/val_auroc"] == pytest.approx(float(rows[0]["auroc"]))
    assert parent.data.tags["fcer.best.head_lr"] == best["head_lr"]
    assert any(name.startswith("importance/") for name in parent.data.metrics)
    kept = {file.path for file in client.list_artifacts(parent.info.run_id, "study")}
    assert kept == {"study/best.yaml", "study/plots.html", "study/trials.csv"}
    assert "test/ensemble_ap" not in parent.data.metrics


def test_the_best_head_is_refitted_and_its_settings_are_a_configuration(
    studied: tuple[Path, str, list[str], list[str]],
):
    folder, *_ = studied
    best = resolve(folder / "work" / "studies" / "head" / "best.yaml").config
    rows = [row for row in table(folder, "head") if row["state"] == "complete"]
    chosen = max(rows, key=lambda row: float(row["auroc"]))
    assert (best.head_lr, best.head_target) == (float(chosen["head_lr"]), chosen["head_target"])
    assert (best.data, best.crop, best.head_epochs, best.anchor) == (Path("data"), 32, 60, "auto")
    refit = runs_of(folder, "head")[1][f"refit trial {chosen['number']}"]
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    (version,) = client.search_model_versions(f"name = 'fcer-student' and run_id = '{refit.info.run_id}'")
    students = (folder / "work" / "students").iterdir()
    (student,) = [path for path in students if read_head_info(path).key == version.tags["key"]]
    assert (student / "history.json").exists()


def test_no_password_is_kept_anywhere(studied: tuple[Path, str, list[str], list[str]]):
    if not has_postgres():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder, out, *_ = studied
    assert PASSWORD not in out
    for path in folder.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path
    parent, _ = runs_of(folder, "head")
    assert parent.data.params["storage"].startswith("postgresql://postgres:***@127.0.0.1:")


def test_a_study_that_is_extended_registers_its_new_best(studied: tuple[Path, str, list[str], list[str]]):
    folder, *_ = studied
    (folder / "rates.yaml").write_text("head_lr: {categorical: [0.001, 0.1, 1.0]}")
    arguments = ["--study", "extended", "--space", "rates.yaml", "--sampler", "grid", "--pruner", "none", *ALONE]
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    for trials in ("1", "3"):
        code, out, err = search(folder, *arguments, "--trials", trials)
        assert code == 0, err
        assert "validation AUROC" in out
    parent, below = runs_of(folder, "extended")
    best = int(parent.data.metrics["best/trial"])
    assert best > 0, "or nothing new is to be registered"
    keys = []
    for number in (0, best):
        run = below[f"refit trial {number}"]
        (version,) = client.search_model_versions(f"run_id = '{run.info.run_id}'")
        assert version.tags["key"] == run.data.tags["fcer.student"]
        keys.append(version.tags["key"])
    assert keys[0] != keys[1]
    assert client.get_model_version_by_alias("fcer-student", "champion") is not None


def test_the_papers_trial_is_the_papers_whatever_else_is_set(studied: tuple[Path, str, list[str], list[str]]):
    """A setting of the head that is not searched changes every trial but the one that all are measured against."""
    folder, *_ = studied
    (folder / "slow.yaml").write_text("head_lr: {categorical: [0.001, 0.0000001]}")
    arguments = ["--space", "slow.yaml", "--sampler", "grid", "--trials", "2", *ALONE]
    papers = []
    for study, options in (("plain", []), ("changed", ["--head-patience", "1", "--head-weight-decay", "1000"])):
        code, _, err = search(folder, "--study", study, *arguments, *options)
        assert code == 0, err
        (paper,) = [row for row in table(folder, study) if row["paper"] == "true"]
        papers.append((paper["auroc"], paper["epoch"]))
        _, below = runs_of(folder, study)
        assert below["trial 0"].data.params["head_weight_decay"] == "0.0005"
    assert papers[0] == papers[1]


def test_a_trial_that_a_kill_kept_from_mlflow_is_logged_by_the_next_command(
    studied: tuple[Path, str, list[str], list[str]],
):
    folder, *_ = studied
    (folder / "rate.yaml").write_text("head_lr: {categorical: [0.001, 0.1]}")
    arguments = ["--study", "lost", "--space", "rate.yaml", "--sampler", "grid", "--pruner", "none", *ALONE]
    arguments += ["--trials", "2"]
    code, _, err = search(folder, *arguments)
    assert code == 0, err
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    lost = runs_of(folder, "lost")[1]["trial 1"]
    for tag in ("fcer.trial", "fcer.trial_state"):
        client.delete_tag(lost.info.run_id, tag)
    client.set_terminated(lost.info.run_id, "KILLED")
    for _ in range(2):
        code, _, err = search(folder, *arguments)
        assert code == 0, err
        found = runs_of(folder, "lost")[1]["trial 1"]
        assert found.info.run_id == lost.info.run_id and found.info.status == "FINISHED", "the same, once"
        assert found.data.tags["fcer.trial_state"] == "complete"
        assert found.data.metrics["best/val_auroc"] == lost.data.metrics["best/val_auroc"]


def test_no_sampler_unpickles_what_a_storage_holds(studied: tuple[Path, str, list[str], list[str]]):
    """CMA-ES keeps its state as a pickle in the storage, so that a crafted file would run code."""
    code, _, err = search(studied[0], "--sampler", "cmaes")
    assert code == 2 and "sampler is 'cmaes', but should be one of tpe, gp, random, grid" in err


def wait_for(what: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    deadline = time.monotonic() + 300
    while not (found := what()):
        assert process.poll() is None, "it ended before it could be killed: use more epochs"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_killed_and_started_again_it_accounts_for_every_trial(studied: tuple[Path, str, list[str], list[str]]):
    folder, *_ = studied
    arguments = ["--study", "killed", "--trials", "4", "--head-epochs", "200", "--head-patience", "200"]
    arguments += ["--pruner", "none"]
    call = [sys.executable, "-m", "fcer", *arguments_of(*arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    process = subprocess.Popen(call, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    url = f"sqlite:///{folder}/work/studies.db"

    def two_at_work() -> list[int]:
        if not (folder / "work" / "studies.db").exists() or "killed" not in optuna.get_all_study_names(url):
            return []
        trials = optuna.load_study(study_name="killed", storage=url).get_trials(states=(TrialState.RUNNING,))
        workers = {trial.user_attrs["worker"][1] for trial in trials if "worker" in trial.user_attrs}
        return sorted(workers) if len(workers) == 2 else []

    workers = wait_for(two_at_work, process)
    os.kill(workers[0], signal.SIGKILL)
    time.sleep(0.2)
    process.kill()
    process.wait()
    psutil.wait_procs([psutil.Process(pid) for pid in workers[1:] if psutil.pid_exists(pid)], timeout=60)
    assert not any(psutil.pid_exists(pid) for pid in workers), "workers end with their parent"

    code, _, err = search(folder, *arguments)
    assert code == 0, err
    assert "was killed with search" in err
    rows = table(folder, "killed")
    assert Counter(row["state"] for row in rows if row["counts"] == "true") == {"complete": 4}
    lost = {row["number"] for row in rows if row["counts"] == "false"}
    assert lost and {row["retry_of"] for row in rows} - {""} == lost, "each lost trial was done again, once"
    assert len(rows) == 4 + len(lost)
    parent, below = runs_of(folder, "killed")
    assert {run.info.status for run in (parent, *below.values())} <= {"FINISHED", "FAILED", "KILLED"}
    assert parent.info.status == "FINISHED"
    done = [run for run in below.values() if run.data.tags.get("fcer.trial_state") == "complete"]
    assert {f"trial {row['number']}" for row in rows} == {name for name in below if name.startswith("trial")}
    assert len(done) == len([row for row in rows if row["state"] == "complete"]), "none is lost by the kill"

    code, out, err = search(folder, *arguments)
    assert code == 0, err
    assert "was refitted and registered before" in out and table(folder, "killed") == rows
    code, _, err = search(folder, *arguments, "--head-momentum", "0.5")
    assert code == 2 and "has other settings of the head beside the space; name another --study" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--space", "bad.yaml"], "fcer: bad.yaml: head_lr: the range from 1 to 0.1 is empty; give the smaller"),
        (["--space", "none.yaml"], "fcer: none.yaml: no such file"),
        (["--year", "all"], "fcer: year: a study is of one test year; name it with --year"),
        (["--freeze", "false"], "fcer: freeze: a study fits heads on cached features of a frozen backbone"),
        (["--study", "a/b"], "fcer: study: 'a/b' also names a folder; use letters"),
        (["--sampler", "grid"], "fcer: head_lr: a grid needs a step or a list of choices; give one, or another"),
        (["--pruner", "hyperband", "--objective", "auroc_auprc"], "fcer: pruner: with two objectives no trial can be"),
        (["--storage", "redis://x"], "fcer: storage: redis://x cannot be used; give sqlite:///FILE, journal:FILE or"),
        (["--storage", "sqlite:///mlflow.db"], "fcer: storage: sqlite:///mlflow.db is MLflow's own database; name"),
        (["--storage", "postgresql://me:hidden@127.0.0.1:9/x"], "fcer: storage: postgresql://me:***@127.0.0.1:9/x "),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_starts(
    arguments: list[str],
    sentence: str,
    fcer_main: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    (tmp_path / "bad.yaml").write_text("head_lr: {float: [1.0, 0.1]}")
    code, out, err = fcer_main("search", *arguments)
    assert code in (1, 2) and out == "" and err.startswith(sentence) and err.count("\n") == 1
    assert "hidden" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize(
    ("storage", "address"),
    [
        (["--storage", "journal:trials.log"], "optuna-dashboard 'trials.log'"),
        (["--storage", "postgresql://me:hidden@db/x"], "optuna-dashboard 'postgresql://me:***@db/x'"),
        ([], "optuna-dashboard 'sqlite:///work/studies.db'"),
    ],
)
def test_the_dashboard_is_explained(
    storage: list[str], address: str, fcer_main: Callable[..., tuple[int, str, str]], tmp_path: Path
):
    code, out, err = fcer_main("search", "--dashboard", *storage)
    assert (code, err) == (0, "") and out.endswith(address + "\n") and out.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is made"

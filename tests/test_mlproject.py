"""mlproject and the command line cannot drift apart, and every entry point really runs."""

import os
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest
import yaml
from mlflow.projects._project_spec import load_project

from fcer.commands import COMMANDS

ROOT = Path(__file__).parent.parent
PROJECT = yaml.safe_load((ROOT / "mlproject").read_text())
ENTRY_POINTS = PROJECT["entry_points"]
TINY = {
    "fires_per_year": "2",
    "image_size": "32,36",
    "fire_days": "7 7",
    "crop": "32",
    "width": "0.0625",
    "member_epochs": "1",
    "member_batch_size": "4",
    "bootstrap": "10",
    "head_epochs": "2",
    "trials": "3",
    "year": "2021",
    "min_detections": "5",
}


def test_every_command_has_its_entry_point():
    assert set(ENTRY_POINTS) == {name for name, command in COMMANDS.items() if command.argument is None}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_an_entry_point_runs_the_checkout_and_overrides_nothing(name: str):
    """A parameter that is declared has a default, which would override the YAML file of `-P config=...`."""
    assert ENTRY_POINTS[name] == {"command": f"python src/fcer {name}"}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_any_option_of_a_command_can_be_a_parameter(name: str):
    """MLflow hands what mlproject does not declare over as flags, which is why it need not declare all."""
    entry_point = load_project(str(ROOT)).get_entry_point(name)
    for option in (*COMMANDS[name].options, "config"):
        assert entry_point.compute_command({option: "7"}, None).endswith(f"--{option} 7")


def test_the_environment_is_the_lock():
    environment = yaml.safe_load((ROOT / "python_env.yaml").read_text())
    assert environment["dependencies"] == ["-r requirements.txt"]
    assert "python" not in environment
    pins = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert all(pin.count("==") == 1 and " " not in pin for pin in pins)


def mlflow_run(name: str, folder: Path) -> None:
    options = {**TINY, "work": str(folder / "work")}
    given = {key: value for key, value in options.items() if key in COMMANDS[name].options}
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
    }
    call = [sys.executable, "-m", "mlflow", "run", str(ROOT), "-e", name, "--env-manager", "local"]
    call += [word for key, value in given.items() for word in ("-P", f"{key}={value}")]
    call += ["--experiment-name", "fcer"]
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert name == "promote" or str(folder / "work") in done.stdout


CHAINS = [
    ["synthesize", "convert", "ingest", "inspect", "train", "distill", "promote", "predict"],
    ["search", "report", "evaluate", "main"],
]
"""Each finds what those before it have made."""


def test_no_entry_point_is_left_out():
    assert {name for chain in CHAINS for name in chain} == set(ENTRY_POINTS)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[-1])
def test_mlflow_runs_every_entry_point(chain: list[str], tmp_path: Path):
    for name in chain:
        mlflow_run(name, tmp_path)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)
    assert {run.info.status for run in runs} <= {"FINISHED"}
    own = {run.data.tags.get("mlflow.project.entryPoint"): run for run in runs}
    assert set(own) - {None} == set(chain)
    assert all("mlflow.parentRunId" not in own[name].data.tags for name in chain)
    assert all(own[name].data.params["fires_per_year"] == "2" for name in chain if name != "promote")

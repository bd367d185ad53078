"""mlproject and the command line cannot drift apart, and every entry point really runs."""

import os
import re
import shlex
import sys
from pathlib import Path

import mlflow
import pytest
import yaml
from mlflow.projects._project_spec import load_project

import project_file
from fcer.cli import parse, resolved_of
from fcer.commands import COMMANDS
from fcer.config import Config, Resolved, resolve
from fcer.config.conversion import hints
from fcer.config.fields import option_of
from fcer.config.subjects import first_of
from mlflow_stores import fresh_store

ROOT = Path(__file__).parent.parent
PROJECT = yaml.safe_load((ROOT / "mlproject").read_text())
ENTRY_POINTS = PROJECT["entry_points"]
TINY = {
    "fires_per_year": "2",
    "image_size": "32,36",
    "fire_days": "7 7",
    "arch": "unet_t1",
    "members": "2",
    "crop": "32",
    "width": "0.0625",
    "member_epochs": "1",
    "member_batch_size": "4",
    "bootstrap": "10",
    "methods": "student ensemble",
    "head_epochs": "2",
    "year": "2021",
    "min_detections": "5",
}


def test_every_command_has_its_entry_point():
    ending = {name for name, command in COMMANDS.items() if not command.stays}
    assert set(ENTRY_POINTS) == {name for name in ending if COMMANDS[name].argument is None}


def test_the_file_is_the_one_that_the_commands_make():
    assert (ROOT / "mlproject").read_text() == project_file.text(), "python tests/helpers/project_file.py > mlproject"


def asked(name: str, **parameters: str) -> Resolved:
    """What our command line makes of what MLflow would run."""
    python, script, *given = shlex.split(
        load_project(str(ROOT)).get_entry_point(name).compute_command(parameters, None)
    )
    assert (python, script) == ("python", "src/fcer")
    command, resolved = resolved_of(parse(given))
    assert command.name == name
    return resolved


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_what_is_not_given_overrides_nothing(name: str, tmp_path: Path):
    assert ENTRY_POINTS[name] == {"command": f"python src/fcer {name}"}, "MLflow logs whatever is declared as set"
    assert asked(name) == resolve(None, {}, demo=COMMANDS[name].demo)
    (tmp_path / "mine.yaml").write_text("seed: 5\nwork: elsewhere\n")
    resolved = asked(name, config=str(tmp_path / "mine.yaml"))
    assert (resolved.config.seed, str(resolved.config.work)) == (5, "elsewhere")
    assert {key for key, origin in resolved.origins.items() if origin != "default"} == {"seed", "work"}


def test_the_file_tells_of_the_options_that_people_use():
    _, *parts = (ROOT / "mlproject").read_text().split("    command: python src/fcer ")
    told = {part.split()[0]: re.findall(r"# -P (\w+)=  (?:string|float): \w", part) for part in parts}
    assert told == {name: ["config", *first_of(COMMANDS[name].options)] for name in ENTRY_POINTS}


SPECIAL = {
    "cluster": "local:2",
    "features": "fire",
    "fire_days": "7,9",
    "fold": "3",
    "head_momentum": "0.5",
    "image_size": "64 96",
    "layer": "elevation=dem.tif",
    "member_dropout": "0.5",
    "methods": "student tta",
    "miss": "0.1 0.2",
    "teacher": "ensemble_mi",
    "threshold": "balanced",
    "watch_quantile": "0.5",
    "width": "0.5",
    "years": "2018 2019",
}
"""Values of settings that cannot be 64."""


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_any_option_of_a_command_can_be_a_parameter(name: str):
    """MLflow hands what mlproject does not declare over as flags, which is why it need not declare all."""
    options = COMMANDS[name].options
    usual = {key: "true" if hints(Config)[key] is bool else [*option_of(key).choices, "64"][0] for key in options}
    given = {key: SPECIAL.get(key, value) for key, value in usual.items()}
    resolved = asked(name, **given)
    assert all(resolved.origins[key] == "--" + key.replace("_", "-") for key in options)


def test_the_environment_is_the_lock():
    environment = yaml.safe_load((ROOT / "python_env.yaml").read_text())
    assert environment["dependencies"] == ["-r requirements.txt"]
    assert "python" not in environment
    pins = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert all(pin.count("==") == 1 and " " not in pin for pin in pins)


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MLFLOW_TRACKING_URI": fresh_store(folder),
    }


def in_yaml(value: str) -> str:
    words = value.replace(",", " ").split()
    return f"[{', '.join(words)}]" if len(words) > 1 else value


def mlflow_run(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As `mlflow run` does it, without starting that for each."""
    options = {**TINY, "work": str(folder / "work")}
    given = {key: value for key, value in options.items() if key in COMMANDS[name].options}
    if name == CHAIN[0]:  # the same from a file
        lines = [f"{key}: {in_yaml(value)}\n" for key, value in given.items() if key != "work"]
        (folder / "mine.yaml").write_text("".join(lines))
        given = {"config": str(folder / "mine.yaml"), "work": given["work"]}
    capfd.readouterr()
    mlflow.projects.run(str(ROOT), name, parameters=given, env_manager="local", experiment_name="fcer")
    assert str(folder / "work") in capfd.readouterr().out


CHAIN = ["distill", "main"]
"""Each finds what those before it have made. Entry points differ in the command's name alone, as the test above holds,
so that these show that MLflow starts all of them: processes of many seconds."""


def test_mlflow_runs_the_entry_points_one_after_the_other(tmp_path: Path, monkeypatch, capfd):
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for name in CHAIN:
        mlflow_run(name, tmp_path, capfd)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)
    assert {run.info.status for run in runs} <= {"FINISHED"}
    own = {run.data.tags.get("mlflow.project.entryPoint"): run for run in runs}
    assert all(own[name].info.run_name.startswith(name) for name in CHAIN)
    assert all("''" not in run.data.params.values() for run in runs), "what was not set is not logged"
    assert all(own[name].data.tags.get("mlflow.note.content") for name in CHAIN)
    assert set(own) - {None} == set(CHAIN)
    assert all("mlflow.parentRunId" not in own[name].data.tags for name in CHAIN)
    assert all(own[name].data.params["fires_per_year"] == "2" for name in CHAIN), "from a file or as parameters"

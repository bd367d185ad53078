"""The image's recipe: no findings of a linter, nothing in it that should not be, and commands that start."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docker.utils.build import exclude_paths

from compose_cases import DOCKER, ROOT, recipe_line, run_image

RECIPE = (DOCKER / "Dockerfile").read_text()


def test_a_linter_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    worse = "FROM python\nRUN apt-get install gcc\n"
    assert subprocess.run([hadolint, "-"], input=worse, capture_output=True, text=True).returncode == 1


def test_only_what_is_copied_reaches_the_builder(tmp_path: Path):
    """As docker reads .dockerignore, in a checkout with all that must stay outside."""
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", RECIPE, re.MULTILINE) for word in line.split()[:-1]]
    assert {"requirements.txt", "src", "docker/entrypoint.sh"} <= set(copied)
    for name in copied:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    wanted = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    for private in ("docker/.env", ".git/config", "mlflow.db", "work/a", "data/a", ".venv/a", "src/fcer/__pycache__/a"):
        (tmp_path / private).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / private).touch()
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sent = exclude_paths(str(tmp_path), [line for line in lines if line and not line.startswith("#")])
    assert {name for name in sent if (tmp_path / name).is_file()} == {n for n in wanted if ".egg-info" not in n}


def test_it_is_built_of_the_lock_and_runs_as_nobody_special():
    build, final = RECIPE.split("\nFROM ")[1:]
    assert "--requirement /source/requirements.txt" in build and "--no-deps /source" in build
    assert "pip install" not in final and "COPY --from=build" in final
    assert build.rstrip().endswith("pip uninstall --yes setuptools pip"), "nothing to build with is left"
    (base,) = re.findall(r"^ARG BASE=(\S+)$", RECIPE, re.MULTILINE)
    assert re.search(r":\d+\.\d+\.\d+-", base), "pinned to a release"
    (user,) = re.findall(r"^USER (\d+):\d+$", final, re.MULTILINE)
    assert int(user) >= 10000 and f"--uid {user}" in final


@pytest.mark.parametrize(
    ("index", "given"),
    [("", None), ("cuda", "installs from none"), ("https://cpu.example/whl", "installs from https://")],
)
def test_which_torch_is_built_in_is_chosen(index: str, given: str | None, tmp_path: Path):
    """The recipe's own shell, with a pip that says what it was told."""
    (command,) = re.findall(r"^RUN (case .*?requirements\.txt)$", RECIPE, re.MULTILINE | re.DOTALL)
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\necho "installs from ${PIP_EXTRA_INDEX_URL:-none}: $*"\n')
    pip.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TORCH_INDEX": index}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True)
    if given is None:
        assert done.returncode == 2 and "TORCH_INDEX is not set" in done.stderr and not done.stdout
    else:
        assert done.returncode == 0 and done.stdout.startswith(given)


@pytest.mark.parametrize("program", ["entrypoint.sh", "healthy.py", "databases.sh"])
def test_programs_can_be_started(program: str):
    """COPY keeps the mode."""
    assert (DOCKER / program).stat().st_mode & 0o111 == 0o111


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ((), "usage: fcer [-h]"),
        (("distill", "--help"), "usage: fcer distill"),
        (("fcer", "distill", "--help"), "usage: fcer distill"),
        (("mlflow", "--version"), "mlflow, version 3."),
        (("dask", "--version"), "dask, version "),
        (("python", "-c", "print('a  b')"), "a  b"),
    ],
)
def test_the_entry_point_runs_commands_of_fcer_and_whole_commands(command: tuple[str], answer: str, tmp_path: Path):
    done = run_image(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(answer)


def test_the_entry_point_passes_exit_codes_on(tmp_path: Path):
    assert run_image(tmp_path, "python", "-c", "raise SystemExit(7)").returncode == 7
    done = run_image(tmp_path, "convert", "--source", "nowhere", "--out", "out")
    assert done.returncode == 2 and done.stderr.startswith("fcer: "), "fcer's own, whatever else has that name"


def test_the_health_check_of_a_command(tmp_path: Path):
    assert recipe_line("HEALTHCHECK") == ["fcer", "--version"]
    assert run_image(tmp_path, *recipe_line("HEALTHCHECK")).stdout.startswith("fcer ")

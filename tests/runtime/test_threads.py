"""Waiting threads yield in every process that we start, unless the user says otherwise; cores are as granted."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fcer.runtime.threads import SPIN, cores, wait_politely

POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
SHOW = "import os; print(os.environ.get('GOMP_SPINCOUNT'), os.environ.get('OMP_WAIT_POLICY'))"


@pytest.fixture(autouse=True)
def no_policy(monkeypatch: pytest.MonkeyPatch):
    for name in POLICIES:
        monkeypatch.delenv(name, raising=False)


def test_a_short_spin_is_set_for_this_process_and_its_children():
    wait_politely()
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout
    assert shown.split() == [SPIN, "None"]


@pytest.mark.parametrize("name", POLICIES)
def test_the_users_own_policy_stays(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, "ACTIVE")
    wait_politely()
    assert {key: os.environ.get(key) for key in POLICIES} == {**dict.fromkeys(POLICIES), name: "ACTIVE"}


@pytest.mark.parametrize("start", ["-m fcer", "-c 'from fcer.cli import main; main()'"])
def test_the_command_line_sets_it_before_torch_is_imported(start: str, tmp_path: Path):
    """A stand-in for torch tells what it saw when it was imported."""
    (tmp_path / "torch.py").write_text(f"{SHOW}\nraise SystemExit(0)\n")
    call = f"{sys.executable} {start} train --year 2021 --work {tmp_path}/work"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2] / 'src'}"}
    shown = subprocess.run(call, shell=True, capture_output=True, text=True, env=environment).stdout
    assert shown.split()[:2] == [SPIN, "None"]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max 100000\n", math.inf),
        ("50000 100000\n", 1),
        ("150000 100000\n", 2),
        ("broken", math.inf),
        ("1 0", math.inf),
    ],
)
def test_cores_are_at_most_the_containers_quota(text: str, most: float, tmp_path: Path):
    (tmp_path / "cpu.max").write_text(text)
    allowed = len(os.sched_getaffinity(0))
    assert cores(tmp_path / "cpu.max") == max(1, min(allowed, most))
    assert cores(tmp_path / "absent") == allowed

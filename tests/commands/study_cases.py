"""A study small enough for a test, and how tests run commands on it: real processes, a real MLflow store."""

import os
import subprocess
import sys
from pathlib import Path

TINY = [
    *("--fires-per-year", "2", "--image-size", "32", "40", "--fire-days", "7", "8", "--crop", "32"),
    *("--width", "0.0625", "--member-epochs", "2", "--member-batch-size", "4", "--year", "2021", "--workers", "1"),
]
HEAD = ["--head-epochs", "4", "--head-lr", "0.05"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db", **more}


def fcer(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "fcer", *map(str, arguments)]
    return subprocess.run(call, cwd=folder, env=environment(folder, **more), capture_output=True, text=True)


def start(folder: Path, *arguments: str | Path, **more: str) -> "subprocess.Popen[str]":
    call = [sys.executable, "-m", "fcer", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(call, cwd=folder, env=environment(folder, **more), stdout=pipe, stderr=pipe, text=True)

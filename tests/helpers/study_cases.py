"""A study small enough for a test, and how tests run commands on it: with a real MLflow store, here or in a process."""

import io
import os
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import pytest
import torch

from fcer.cli import main
from mlflow_stores import fresh_store

TINY = [
    *("--fires-per-year", "2", "--image-size", "32", "40", "--fire-days", "7", "8", "--crop", "32"),
    *("--width", "0.0625", "--member-epochs", "2", "--member-batch-size", "4", "--year", "2021", "--workers", "1"),
]
HEAD = ["--head-epochs", "4", "--head-lr", "0.05"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": fresh_store(folder), **more}


def fcer(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, since starting one takes longer than most of what tests ask for."""
    words = [str(argument) for argument in arguments]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(folder)
        for name, value in environment(folder, **more).items():
            patch.setenv(name, value)
        # as Python starts with them: pytest shows more
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        torch.set_num_threads(1)
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def fcer_apart(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    call = [sys.executable, "-m", "fcer", *map(str, arguments)]
    return subprocess.run(call, cwd=folder, env=environment(folder, **more), capture_output=True, text=True)


def start(folder: Path, *arguments: str | Path, **more: str) -> "subprocess.Popen[str]":
    """Begin a command in a process of its own, which can be interrupted whoever started the tests."""
    call = [sys.executable, "-m", "fcer", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # a shell that runs the tests in the background has them, and all that they start, ignore Ctrl-C
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(call, cwd=folder, env=environment(folder, **more), preexec_fn=heed, **pipes)


def besides_few_fires(stderr: str) -> list[str]:
    """What a command complained of, but for this: so small a study has too few fires to guarantee a miss."""
    return [line for line in stderr.splitlines() if "too few fires to guarantee a miss of" not in line]

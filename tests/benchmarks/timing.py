"""How every benchmark measures: both ways in turns, so that a busy moment hits both, and the best of each."""

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]


def seconds(*ways: Callable[[], object], repeats: int = 5) -> list[float]:
    """The shortest time of each way over `repeats` rounds, after one round that warms up."""
    best = [float("inf")] * len(ways)
    for round_ in range(repeats + 1):
        for k, way in enumerate(ways):
            start = time.perf_counter()
            way()
            if round_:
                best[k] = min(best[k], time.perf_counter() - start)
    return best


def apart(module: str, call: str, **environment: str) -> list[float]:
    """The numbers that `call`, of a module of the benchmarks, prints in a process of its own."""

    # not as a program: workers are to find what it sends them by the module's name
    script = f"from tests.benchmarks.{module} import *; {call}"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{call} ended with {done.returncode}")
    return [float(word) for word in done.stdout.split()]


def print_cost(way: Callable[[], object]) -> None:
    """Run it, and print its seconds and the peak of this process's memory in MB: what `apart` reads."""
    begin = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        way()
    print(time.perf_counter() - begin, peak_memory_mb())


def peak_memory_mb() -> float:
    """Of this process alone: the usual counter starts with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

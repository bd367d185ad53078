"""A training step beside a process that keeps every core busy, with threads that sleep while they wait or spin."""

import subprocess
import sys

import torch
from tests.benchmarks.rows import hold, show
from tests.benchmarks.timing import apart, seconds

from fcer.models.backbones import build
from fcer.runtime.threads import SPIN, cores
from fcer.training.learner import fire_loss
from fcer.training.optimisers import AdamW

WIDTH, ROUNDS = 0.25, 3
SPINNING = str(10**10)
"""About what OpenMP's own default comes to; set, so that nobody's environment decides."""


def main() -> None:
    """Print the rows: each way in a process of its own, since the policy is read before torch is imported."""
    quiet = measured()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(max(1, cores() // 2))]
    try:
        beside = measured()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    what = f"a training step beside a busy process, utae_t5 width {WIDTH:g}"
    show(what, beside[SPIN], beside[SPINNING], 1.1, aim=1.5)
    hold("  what polite waiting costs on a quiet machine", quiet[SPIN] / quiet[SPINNING], 1.25, aim=1.05)
    hold("  the step beside the busy process against the quiet one", beside[SPIN] / quiet[SPIN], 2.5)


def measured() -> dict[str, float]:
    """Seconds of one step, polite and spinning: the best of a few processes of each, in turns."""
    best = dict.fromkeys((SPIN, SPINNING), float("inf"))
    for _ in range(ROUNDS):
        for spin in best:
            (taken,) = apart("busy_machine", "step()", GOMP_SPINCOUNT=spin, OMP_WAIT_POLICY="ACTIVE")
            best[spin] = min(best[spin], taken)
    return best


def step(width: float = WIDTH, repeats: int = 15) -> None:
    """Print how long the quickest of some steps takes: short ones, so that some of them meet nobody else."""
    torch.manual_seed(0)
    backbone = build("utae_t5", 7, width).to(memory_format=torch.channels_last)
    optimizer = AdamW(backbone.parameters(), fused=True)
    x, y = torch.randn(4, 5, 7, 128, 128), torch.zeros(4, 1, 128, 128)

    def one() -> None:
        fire_loss(backbone(x), y, 1.0).backward()
        optimizer.step()
        optimizer.zero_grad()

    print(seconds(one, repeats=repeats)[0])

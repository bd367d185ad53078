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

SPINNING = str(10**10)
"""About what OpenMP's own default comes to; set, so that nobody's environment decides."""


def main() -> None:
    """Print the rows: each way in a process of its own, since the policy is read before torch is imported."""
    ways = {"polite": SPIN, "spinning": SPINNING}
    quiet = {name: measured(spin) for name, spin in ways.items()}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(max(1, cores() // 2))]
    try:
        beside = {name: measured(spin) for name, spin in ways.items()}
    finally:
        for process in busy:
            process.kill()
            process.wait()
    show("a training step beside a busy process, utae_t5 width 0.5", beside["polite"], beside["spinning"], 1.2)
    hold("  what polite waiting costs on a quiet machine", quiet["polite"] / quiet["spinning"], 1.15)
    hold("  the step beside the busy process against the quiet one", beside["polite"] / quiet["polite"], 2.5)


def measured(spin: str) -> float:
    """Seconds of one step."""
    (taken,) = apart("busy_machine", "step()", GOMP_SPINCOUNT=spin, OMP_WAIT_POLICY="ACTIVE")
    return taken


def step(width: float = 0.5, repeats: int = 5) -> None:
    """Print how long the quickest of a few steps takes."""
    torch.manual_seed(0)
    backbone = build("utae_t5", 7, width).to(memory_format=torch.channels_last)
    optimizer = AdamW(backbone.parameters(), fused=True)
    x, y = torch.randn(4, 5, 7, 128, 128), torch.zeros(4, 1, 128, 128)

    def one() -> None:
        fire_loss(backbone(x), y, 1.0).backward()
        optimizer.step()
        optimizer.zero_grad()

    print(seconds(one, repeats=repeats)[0])

"""Optimisers that never import torch's compiler take the very steps that torch's own take."""

import subprocess
import sys

import pytest
import torch

from fcer.training import optimisers


@pytest.mark.parametrize(
    ("name", "options"), [("SGD", {"momentum": 0.9, "fused": True}), ("AdamW", {"fused": True}), ("AdamW", {})]
)
def test_the_same_steps(name: str, options: dict[str, object]):
    ends = []
    for kind in (getattr(optimisers, name), getattr(torch.optim, name)):
        torch.manual_seed(0)
        layer = torch.nn.Linear(5, 3)
        optimizer = kind(layer.parameters(), lr=0.1, **options)
        for _ in range(2):
            for _ in range(3):
                layer(torch.ones(2, 5)).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            state = optimizer.state_dict()
            optimizer = kind(layer.parameters(), lr=0.1, **options)
            optimizer.load_state_dict(state)
        ends.append(layer.weight.detach())
    assert torch.equal(*ends)


@pytest.mark.slow
def test_the_compiler_stays_away():
    script = """
import sys, torch
from fcer.training.optimisers import AdamW
weights = [torch.ones(2, requires_grad=True)]
optimizer = AdamW(weights, fused=True)
weights[0].sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0

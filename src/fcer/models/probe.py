"""How fast this machine trains a backbone, found by trying."""

import time

import torch

from fcer.models.backbones import architecture, build

__all__ = ["probe"]

_SAMPLES = 2
"""More take proportionally longer."""


def probe(arch: str, channels: int, width: float, side: int) -> tuple[float, int]:
    """Seconds that one sample takes forth and back, and the bytes of the backbone's weights."""
    backbone = build(arch, channels, width).train()
    days = torch.rand(_SAMPLES, architecture(arch).days, channels, side, side)
    times = []
    for _ in range(2):  # the first makes room
        begun = time.perf_counter()
        backbone(days).mean().backward()
        times.append(time.perf_counter() - begun)
    return min(times) / _SAMPLES, sum(4 * weight.numel() for weight in backbone.parameters())

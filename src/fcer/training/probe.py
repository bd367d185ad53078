"""How fast this machine trains, by two short passes: what a plan's guess of time is built on."""

import time

import torch

from fcer.models.backbones import architecture, build

__all__ = ["probe_training"]

_SAMPLES = 2
"""Passed forth and back; more take proportionally longer."""


def probe_training(arch: str, channels: int, width: float, crop: int) -> tuple[float, int]:
    """Seconds of a sample forth and back, and the bytes of a member's weights."""
    backbone = build(arch, channels, width).train()
    days = torch.rand(_SAMPLES, architecture(arch).days, channels, crop, crop)
    times = []
    for _ in range(2):  # the first makes room
        begun = time.perf_counter()
        backbone(days).mean().backward()
        times.append(time.perf_counter() - begun)
    return min(times) / _SAMPLES, sum(4 * weight.numel() for weight in backbone.parameters())

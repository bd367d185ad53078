"""What networks compute with: single precision, or bfloat16 in training steps and forecasts where that is asked for.

Weights, losses and everything that is scored stay in single precision.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from fcer.errors import ConfigError

__all__ = ["BF16", "FP32", "check_precision", "computing", "has_bf16"]

FP32, BF16 = "fp32", "bf16"

_CPU = torch.device("cpu")

_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")
"""Of processors, as torch names them; without one of them bfloat16 is imitated, and slower than single precision."""


def has_bf16(device: torch.device) -> bool:
    """Whether it multiplies such numbers itself."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return any(torch.cpu.get_capabilities().get(name, False) for name in _INSTRUCTIONS)


def check_precision(precision: str, device: torch.device = _CPU) -> None:
    """Refuse what would only be slower and less exact."""
    if precision == BF16 and not has_bf16(device):
        what = "GPU" if device.type == "cuda" else "processor"
        raise ConfigError(
            f"precision: this {what} has no bf16 and would only imitate it, slower than fp32; leave it out"
        )


def computing(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Within the block, convolutions and products compute with it."""
    return torch.autocast(device.type, torch.bfloat16) if precision == BF16 else nullcontext()

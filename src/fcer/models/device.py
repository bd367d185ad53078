"""Where models compute."""

import torch

from fcer.errors import ConfigError

__all__ = ["choose_device"]


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` means for this process, the `local_rank`th of its machine."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("device: cuda was asked for, but torch finds no GPU here; choose auto or cpu")
    if name == "cpu" or not available:
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"device: {local_rank + 1} processes or more for {torch.cuda.device_count()} GPUs; "
            "start torchrun with --nproc-per-node of at most that"
        )
    return torch.device("cuda", local_rank)

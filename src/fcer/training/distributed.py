"""Several processes that train one member together, as torchrun starts them; alone, everything here does nothing."""

import atexit
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fcer.models.device import choose_device
from fcer.models.members import Member

__all__ = ["World", "put_on"]

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The processes that train together, and which of them this one is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Among the processes of this machine: the number of the GPU to use."""

    @classmethod
    def from_environment(cls) -> "World":
        """As torchrun describes it; one process alone where it says nothing."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return cls()
        rank = int(os.environ["RANK"])
        return cls(rank, int(os.environ["WORLD_SIZE"]), int(os.environ.get("LOCAL_RANK", rank)))

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and speaks to the user."""
        return self.rank == 0

    def connect(self, device: torch.device) -> None:
        """Meet the other processes. They stay connected until they end: members follow one another."""
        if self.size == 1 or distributed.is_initialized():
            return
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # gradients travel between GPUs, everything else between CPUs
        distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        atexit.register(distributed.destroy_process_group)

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        """`model` such that gradients are averaged over the processes."""
        if self.size == 1:
            return model
        return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def agree_on_buffers(self, model: nn.Module) -> None:
        """Give all processes the main one's batch-norm statistics: each has gathered those of its own samples."""
        if self.size > 1:
            for buffer in model.buffers():
                distributed.broadcast(buffer, src=0)

    def gather(self, part: T) -> list[T]:
        """Every process's `part` in the order of their ranks, for the main one; nothing for the others."""
        if self.size == 1:
            return [part]
        parts: list[Any] | None = [None] * self.size if self.is_main else None
        distributed.gather_object(part, parts)
        return parts or []

    def share(self, value: T) -> T:
        """The main process's `value`."""
        if self.size == 1:
            return value
        box: list[Any] = [value]
        distributed.broadcast_object_list(box, src=0)
        shared: T = box[0]
        return shared


def put_on(members: Iterable[Member], device: str) -> None:
    """Let members predict where `device` means for this process, alone."""
    for member in members:
        member.backbone.to(choose_device(device))

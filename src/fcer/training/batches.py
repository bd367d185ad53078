"""Which samples make up a batch, and how batches are read.

Everything random is drawn from the seed, the fold and the epoch alone. An epoch can therefore be repeated, or
reached after a kill, without any generator's state.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from fcer.data.samples import Samples
from fcer.errors import ConfigError, FcerError
from fcer.models.backbones import STRIDE
from fcer.training.distributed import World

__all__ = ["check_batch_size", "draw_seed", "epoch_batches", "load"]


def draw_seed(*decided_by: int) -> int:
    """A seed that other numbers decide, such as the seed of an experiment, a fold and an epoch.

    A 0 at the end counts for nothing: the first of several processes draws what one alone would.
    """
    return int(np.random.SeedSequence(decided_by).generate_state(1, np.uint64)[0])


def epoch_batches(order: Sequence[int], batch_size: int, size: int = 1) -> list[list[list[int]]]:
    """`order` cut into batches of at most `batch_size`, each into one part for each of `size` processes.

    Batches differ by one sample at most. No small rest is left over, which would have to be dropped or would
    upset batch norm, and no sample is lost.
    """
    batches = np.array_split(np.asarray(order), -(-len(order) // batch_size))
    return [[part.tolist() for part in np.array_split(batch, size)] for batch in batches]


def check_batch_size(samples: int, batch_size: int, crop: int, world: World) -> None:
    """Refuse batches from which batch norm cannot learn: the deepest map needs two pixels at least."""
    smallest = min(len(part) for batch in epoch_batches(range(samples), batch_size, world.size) for part in batch)
    if smallest * (crop // STRIDE) ** 2 < 2:
        where = f" for each of {world.size} processes" if world.size > 1 else ""
        raise ConfigError(
            f"batch_size: batches of {batch_size} from {samples} training samples leave {smallest}{where}, too few for "
            f"batch norm at a crop of {crop} px; choose a larger --member-batch-size or --crop"
        )


def load(
    samples: Samples, batches: Sequence[list[int]], *, workers: int = 0, pin: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each batch's days (B, T, C, H, W) and next day's fire (B, 1, H, W), 0 or 1, both float32.

    `workers` processes read ahead. They are started anew for every call, so that each epoch's views are drawn.
    """
    loader = DataLoader(
        cast(TorchDataset[Any], samples),
        batch_sampler=batches,
        num_workers=workers,
        pin_memory=pin,
        # torch's own generator belongs to dropout: how samples are read must not move it
        generator=torch.Generator(),
    )
    try:
        for x_BTCHW, y_BHW in loader:
            yield x_BTCHW, y_BHW[:, None].float()
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise FcerError(
            "a process that reads samples was killed, perhaps for want of memory; start the same command again "
            "with fewer of them: training goes on from the last complete epoch"
        ) from None

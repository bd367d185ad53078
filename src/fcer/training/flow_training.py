"""Training the network that draws maps (flow matching, Lipman et al. 2023) on cached features: minutes at most.

Shape suffixes: B samples, F features, C channels of the condition, H height, W width.
"""

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fcer.training.batches import draw_seed
from fcer.training.epoch_loop import ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord
from fcer.training.feature_shards import CachedSplit
from fcer.training.optimisers import AdamW
from fcer.uncertainty.diffusion import MapFlow, condition, flow_loss

__all__ = ["CONDITIONS", "fit_flow"]

CONDITIONS = 2
"""Channels of the condition besides the decoder's features: logit and today's fire."""

_LR, _BATCH, _SIDE = 2e-3, 8, 64
"""Crops of this side teach as well as whole images and cost less."""


def fit_flow(split: CachedSplit, seed: int, resume: tuple[Path, str], *, epochs: int) -> dict[str, Tensor]:
    """The weights after the last epoch."""
    side = min(_SIDE, split.side)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw_seed(seed))
        flow = MapFlow(split.features + CONDITIONS)
        optimizer = AdamW(flow.parameters(), _LR)

        def step(records: list[EpochRecord]) -> EpochRecord:
            started, epoch = time.perf_counter(), len(records) + 1
            lr = _LR * (1 - len(records) / epochs)
            set_learning_rate(optimizer, lr)
            rng = np.random.default_rng((seed, epoch))
            torch.manual_seed(draw_seed(seed, epoch))
            losses = []
            for batch in np.array_split(rng.permutation(len(split)), -(-len(split) // _BATCH)):
                fire_BHW, told_BCHW = _crops(split, batch.tolist(), rng, side)
                optimizer.zero_grad()
                loss = flow_loss(flow, fire_BHW, told_BCHW)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                losses.append(float(loss.detach()))
            # there is nothing to stop early by: the last epoch is the best
            return EpochRecord(epoch, float(np.mean(losses)), 0.0, float(epoch), lr, time.perf_counter() - started)

        learner = ModelLearner("flow", flow, optimizer)
        return run_epochs(learner, step, epochs=epochs, patience=epochs, resume=resume).weights


def _crops(split: CachedSplit, batch: list[int], rng: np.random.Generator, side: int) -> tuple[Tensor, Tensor]:
    """What burnt and what the network is told, of squares somewhere in the images."""
    fire, told = [], []
    for index in batch:
        features_FP, logits_P, _, y_P, today_P = split.sample(index)
        maps = [part.view(*part.shape[:-1], split.side, split.side) for part in (features_FP, logits_P, today_P, y_P)]
        top, left = rng.integers(0, split.side - side + 1, 2)
        cut = [part[..., top : top + side, left : left + side] for part in maps]
        features_FHW, logits_HW, today_HW, y_HW = cut
        fire.append(y_HW.float())
        told.append(condition(features_FHW[None], logits_HW[None], today_HW[None])[0])
    return torch.stack(fire), torch.stack(told)

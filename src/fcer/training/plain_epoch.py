"""One epoch of a network in one process, for families that are trained as a member is."""

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from fcer.data.samples import Samples
from fcer.models.precision import computing
from fcer.training.batches import draw_seed, epoch_batches, load
from fcer.training.learner import fire_loss
from fcer.training.settings import MemberSettings

__all__ = ["train_epoch"]


def train_epoch(
    network: nn.Module, optimizer: Optimizer, samples: Samples, settings: MemberSettings, epoch: int
) -> float:
    """The mean loss. Of a network with several maps, (B, K, H, W), each is held to what burnt."""
    order = np.random.default_rng((settings.seed, epoch)).permutation(len(samples)).tolist()
    torch.manual_seed(draw_seed(settings.seed, epoch))
    samples.set_epoch(epoch)
    network.train()
    total = 0.0
    batches = [batch for (batch,) in epoch_batches(order, settings.batch_size)]
    for x_BTCHW, y_B1HW in load(samples, batches, workers=0, pin=False):
        with computing(settings.precision, x_BTCHW.device):
            logits_BKHW = network(x_BTCHW)
        loss = fire_loss(logits_BKHW, y_B1HW.expand_as(logits_BKHW), settings.pos_weight)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        total += float(loss.detach()) * len(x_BTCHW)
    return total / len(samples)

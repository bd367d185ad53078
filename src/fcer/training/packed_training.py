"""Training a packed ensemble (Laurent et al. 2023): all members see every batch, each from first weights of its own.

Shape suffixes: B samples, T days, C channels, K members, H height, W width.
"""

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fcer.core.segmentation import average_precision_score
from fcer.data.samples import Samples
from fcer.models.backbones import BackboneSpec, build
from fcer.models.packed import PackedBackbone, pack_states
from fcer.training.batches import draw_seed, load
from fcer.training.epoch_loop import ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord
from fcer.training.learner import adamw, fire_loss
from fcer.training.plain_epoch import train_epoch
from fcer.training.schedules import member_learning_rate
from fcer.training.settings import MemberSettings
from fcer.training.teaching import Teaching

__all__ = ["fit_packed", "new_packed", "packed_spec"]

_ALPHA = 2
"""How much wider all members together are than one of the ensemble."""


def packed_spec(settings: MemberSettings, members: int) -> BackboneSpec:
    """The shape of each member."""
    width = min(1.0, settings.width * _ALPHA / members)
    return build(settings.arch, len(settings.features), width).spec


def new_packed(spec: BackboneSpec, members: int, seed: int) -> PackedBackbone:
    """With the first weights that separate members of these seeds would have."""
    states = []
    for member in range(members):
        torch.manual_seed(draw_seed(seed, member))
        states.append(build(spec.arch, spec.channels, spec.width).state_dict())
    packed = PackedBackbone(spec, members)
    packed.load_state_dict(pack_states(states))
    return packed


def fit_packed(
    teaching: Teaching, settings: MemberSettings, spec: BackboneSpec, resume: tuple[Path, str]
) -> dict[str, Tensor]:
    """The weights that are best on the validation years."""
    member, members = teaching.backbone, len(teaching.teachers)
    training, validation = teaching.training(member.normalization), teaching.validation(member.normalization)
    with torch.random.fork_rng():
        packed = new_packed(spec, members, settings.seed)
        optimizer = adamw(packed, settings)

        def step(records: list[EpochRecord]) -> EpochRecord:
            started, epoch, lr = time.perf_counter(), len(records) + 1, member_learning_rate(settings, records)
            set_learning_rate(optimizer, lr)
            loss = train_epoch(packed, optimizer, training, settings, epoch)
            val_loss, val_ap = _validate(packed, validation, settings)
            return EpochRecord(epoch, loss, val_loss, val_ap, lr, time.perf_counter() - started)

        learner = ModelLearner("packed", packed, optimizer)
        return run_epochs(learner, step, epochs=settings.epochs, patience=settings.patience, resume=resume).weights


@torch.no_grad()
def _validate(packed: PackedBackbone, validation: Samples, settings: MemberSettings) -> tuple[float, float]:
    """Loss and average precision of the members' mean."""
    packed.eval()
    order = list(range(len(validation)))
    batches = [order[k : k + settings.batch_size] for k in range(0, len(order), settings.batch_size)]
    total, prob, fire = 0.0, [], []
    for x_BTCHW, y_B1HW in load(validation, batches, workers=0, pin=False):
        logits_BKHW = packed(x_BTCHW)
        total += float(fire_loss(logits_BKHW, y_B1HW.expand_as(logits_BKHW), settings.pos_weight)) * len(x_BTCHW)
        prob.append(logits_BKHW.sigmoid().mean(1).flatten().numpy())
        fire.append(y_B1HW.bool().flatten().numpy())
    return total / len(order), average_precision_score(np.concatenate(fire), np.concatenate(prob))

"""End-to-end DUDES: backbone and head trained together, on what burnt and on the teacher's uncertainty at once.

The paper leaves the backbone frozen and asks what training it along would do. The backbone starts from its member's
weights; views and teacher's targets are those of the cache, so that both ways learn from the same.

Shape suffixes: B samples, T days, C channels, P pixels of an image.
"""

import copy
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from fcer.core.regions import ring_index
from fcer.core.segmentation import FIRE_THRESHOLD, average_precision_score
from fcer.data.channels import fire_channel
from fcer.data.samples import Samples
from fcer.errors import FcerError, warn
from fcer.models.backbones import Backbone
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.device import choose_device
from fcer.models.inference import fast
from fcer.models.precision import FP32, check_precision, computing
from fcer.models.student import Student, UncertaintyHead
from fcer.models.thresholds import threshold_logit
from fcer.training.batches import check_batch_size, draw_seed, epoch_batches, load
from fcer.training.distributed import World
from fcer.training.epoch_loop import ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch, check_finite
from fcer.training.feature_cache import FeatureCache
from fcer.training.feature_shards import CachedSplit
from fcer.training.head import make_head
from fcer.training.head_losses import LOSSES
from fcer.training.head_settings import HeadSettings
from fcer.training.learner import adamw, fire_loss
from fcer.training.schedules import member_learning_rate
from fcer.training.settings import MemberSettings
from fcer.training.teaching import Teaching
from fcer.training.validation_region import RankedPixels

__all__ = ["FittedStudent", "fit_jointly"]


class FittedStudent(NamedTuple):
    """A backbone and a head with the weights of their best epoch."""

    backbone: Backbone
    info: CheckpointInfo
    """Of the member that the backbone is, or started from."""
    head: UncertaintyHead
    records: list[EpochRecord]
    best_epoch: int
    near_fire: RankedPixels
    """Of the validation years, as both rank them at that epoch."""


@dataclass(frozen=True)
class _Joint:
    """What stays the same from epoch to epoch."""

    head_settings: HeadSettings
    settings: MemberSettings
    fold: int
    views: int
    device: torch.device
    training: Samples
    validation: Samples
    training_targets: Tensor
    validation_targets: Tensor
    near_fire: np.ndarray
    """Which pixels of the validation images (N, P) are at most the anchor from fire."""
    threshold: float
    """Probability above which fire is predicted."""
    frozen_ap: float
    """Validation AP of the backbone as it was before."""

    def rank(self, record: EpochRecord) -> tuple[float, ...]:
        """By AUROC among epochs whose AP is not below the frozen backbone's; the others after them, by AP.

        Errors move with the backbone: without the floor, one that segments worse may make errors that are easier to
        find, and win.
        """
        assert record.val_ap is not None
        return (1.0, record.score) if record.val_ap >= self.frozen_ap else (0.0, record.val_ap)

    def loss(self, student: Student, x_BTCHW: Tensor, y_B1HW: Tensor, target_BP: Tensor) -> tuple[Tensor, Tensor]:
        """Of the segmentation and of the uncertainty together, with the student's output stacked (2, B, P)."""
        x_BTCHW, y_B1HW, target_BP = (t.to(self.device) for t in (x_BTCHW, y_B1HW, target_BP))
        logits_BHW, uncertainty_BHW = (logits.float() for logits in student(x_BTCHW))
        fire = fire_loss(logits_BHW[:, None], y_B1HW, self.settings.pos_weight)
        taught = LOSSES[self.head_settings.loss].value(uncertainty_BHW.flatten(1), target_BP)
        return fire + taught, torch.stack([logits_BHW.flatten(1), uncertainty_BHW.flatten(1)]).detach()


def fit_jointly(
    teaching: Teaching,
    cached: FeatureCache,
    head_settings: HeadSettings,
    settings: MemberSettings,
    anchor_px: float,
    *,
    resume: tuple[Path, str],
    on_epoch: OnEpoch | None = None,
    threshold: float = FIRE_THRESHOLD,
) -> FittedStudent:
    """Train both until the last epoch or until validation AUROC stalls; the best epoch's weights are returned.

    The head's shape, loss and target come from `head_settings`; epochs, learning rate and all else that training a
    whole network needs from `settings`. Errors, and with them AUROC, are those of the backbone as it is then; the best
    epoch is chosen among those that segment the validation years as well as the frozen backbone does.
    """
    joint = _prepare(teaching, cached, head_settings, settings, anchor_px, threshold)
    backbone, info = teaching.backbone.original()
    head, _ = make_head(cached.training.features, head_settings)
    with torch.random.fork_rng(), torch.backends.cudnn.flags(benchmark=False, deterministic=True):
        student = Student(backbone.requires_grad_(True), head, fire_channel(teaching.backbone.features)).to(
            joint.device
        )
        optimizer = adamw(student, settings)
        with tqdm(total=settings.epochs, desc="fit student", unit="epoch", disable=None, leave=False) as bar:
            records, best = run_epochs(
                ModelLearner("student", student, optimizer),
                lambda done: _epoch(joint, student, optimizer, done, bar),
                epochs=settings.epochs,
                patience=settings.patience,
                resume=resume,
                on_epoch=on_epoch,
                rank=joint.rank,
            )
        student.load_state_dict(best)
        near_fire = _validate(joint, student).near_fire
    kept = best_epoch(records, joint.rank)
    _warn_if_worse(joint, records[kept - 1])
    backbone, head = student.backbone.cpu().eval(), student.head.cpu().eval()
    if settings.precision != FP32:
        info = replace(info, precision=settings.precision)
    return FittedStudent(backbone, info, head, records, kept, near_fire)


def _warn_if_worse(joint: _Joint, kept: EpochRecord) -> None:
    if kept.val_ap is not None and kept.val_ap < joint.frozen_ap:
        warn(
            f"student: trained along, the backbone's validation AP stays below the frozen one's in every epoch "
            f"({kept.val_ap:.3f} at best, against {joint.frozen_ap:.3f}); give a lower --member-lr or more "
            "--member-epochs, or leave it frozen"
        )


def _prepare(
    teaching: Teaching,
    cached: FeatureCache,
    head_settings: HeadSettings,
    settings: MemberSettings,
    anchor_px: float,
    threshold: float,
) -> _Joint:
    normalization = teaching.shared or teaching.backbone.normalization
    training, validation = teaching.training(normalization), teaching.validation(normalization)
    check_batch_size(len(training), settings.batch_size, settings.crop, World())
    device = choose_device(settings.device)
    check_precision(settings.precision, device)
    prepare = LOSSES[head_settings.loss].prepare
    side = cached.validation.side
    fire = np.concatenate([block.y_BP.numpy() for block in cached.validation.blocks()]).reshape(-1, side, side)
    return _Joint(
        head_settings,
        settings,
        teaching.backbone.fold.number,
        teaching.views,
        device,
        training,
        validation,
        prepare(cached.training.targets(head_settings.target)),
        prepare(cached.validation.targets(head_settings.target)),
        (ring_index(fire, [anchor_px]) == 0).reshape(len(fire), -1),
        threshold,
        _cached_ap(cached.validation),
    )


def _cached_ap(split: CachedSplit) -> float:
    """Average precision of the cached backbone's logits, over all pixels together."""
    fire, logits = (torch.cat([getattr(block, name) for block in split.blocks()]) for name in ("y_BP", "logits_BP"))
    return average_precision_score(fire.flatten().numpy(), logits.flatten().sigmoid().numpy())


def _epoch(
    joint: _Joint, student: Student, optimizer: torch.optim.Optimizer, records: list[EpochRecord], bar: "tqdm[Any]"
) -> EpochRecord:
    started = time.perf_counter()
    epoch, lr = len(records) + 1, member_learning_rate(joint.settings, records)
    set_learning_rate(optimizer, lr)
    train_loss = _train_epoch(joint, student, optimizer, epoch)
    val_loss, val_ap, near_fire = _validate(joint, student)
    score = near_fire.auroc()
    check_finite("student", "member", epoch, lr, train_loss, val_loss)
    if math.isnan(score):
        raise FcerError(
            f"student: in epoch {epoch} the backbone makes no error near fire on the validation years, or nothing "
            "else, so that AUROC is undefined; start again with a lower --member-lr, or another --anchor"
        )
    bar.update(epoch - bar.n)
    bar.set_postfix(loss=f"{train_loss:.4f}", AUROC=f"{score:.4f}")
    return EpochRecord(epoch, train_loss, val_loss, score, lr, time.perf_counter() - started, val_ap)


def _train_epoch(joint: _Joint, student: Student, optimizer: torch.optim.Optimizer, epoch: int) -> float:
    """One pass over one of the cached views."""
    settings, samples = joint.settings, joint.training
    view = (epoch - 1) % joint.views
    samples.set_epoch(view)
    order = np.random.default_rng((settings.seed, joint.fold, epoch)).permutation(len(samples)).tolist()
    torch.manual_seed(draw_seed(settings.seed, joint.fold, epoch))
    student.train()
    batches = [batch for (batch,) in epoch_batches(order, settings.batch_size)]
    total = 0.0
    loaded = load(samples, batches, workers=settings.loader_workers)
    for batch, (x_BTCHW, y_B1HW) in zip(batches, loaded, strict=True):
        places = [view * len(samples) + index for index in batch]
        with computing(settings.precision, joint.device):
            loss, _ = joint.loss(student, x_BTCHW, y_B1HW, joint.training_targets[places])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(student.parameters(), settings.clip_norm)
        optimizer.step()
        total += float(loss.detach()) * len(batch)
    return total / len(samples)


class _Validation(NamedTuple):
    loss: float
    ap: float
    near_fire: RankedPixels


@torch.no_grad()
def _validate(joint: _Joint, student: Student) -> _Validation:
    """Loss and AP on whole images, and the pixels near fire."""
    samples, size = joint.validation, joint.settings.batch_size
    quick = Student(fast(student.backbone), copy.deepcopy(student.head), student.fire_channel).eval()
    batches = [list(range(start, min(start + size, len(samples)))) for start in range(0, len(samples), size)]
    total = 0.0
    fires, logits, uncertainties = [], [], []
    loaded = load(samples, batches, workers=joint.settings.loader_workers)
    for batch, (x_BTCHW, y_B1HW) in zip(batches, loaded, strict=True):
        loss, output = joint.loss(quick, x_BTCHW, y_B1HW, joint.validation_targets[batch])
        total += float(loss) * len(batch)
        logits_BP, uncertainty_BP = output.cpu()
        fires.append(y_B1HW.flatten(1).bool().numpy())
        logits.append(logits_BP)
        uncertainties.append(uncertainty_BP.sigmoid().numpy()[joint.near_fire[batch]])
    fire_NP, logits_NP = np.concatenate(fires), torch.cat(logits)
    ap = average_precision_score(fire_NP.ravel(), logits_NP.sigmoid().numpy().ravel())
    predicted_NP = (logits_NP > threshold_logit(joint.threshold)).numpy()
    near, sample_P = joint.near_fire, np.nonzero(joint.near_fire)[0]
    error_P, logit_P = (predicted_NP != fire_NP)[near], logits_NP.numpy()[near]
    ranked = RankedPixels(error_P, np.concatenate(uncertainties), sample_P, predicted_NP[near], logit_P)
    return _Validation(total / len(samples), ap, ranked)

"""From an ensemble to its student: cache, anchor, fit, and a folder that holds all that predicting needs.

The folder is named by everything that decides the student. One that is there is taken as it is; one whose making was
killed is finished, and ends with the weights that it would have had.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fcer import __version__
from fcer.core.arrays import IntArray
from fcer.core.regions import radius_in_pixels
from fcer.data.samples import Samples
from fcer.models.backbones import Backbone
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.student import UncertaintyHead
from fcer.models.student_files import HeadInfo, head_file, read_head_info, save_student
from fcer.runtime.files import atomic_path
from fcer.runtime.steps import Step
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch
from fcer.training.feature_cache import FeatureCache, Teaching, cache_features, cache_key
from fcer.training.head import HeadTask, fit_head
from fcer.training.head_settings import HeadSettings
from fcer.training.joint import fit_jointly
from fcer.training.settings import MemberSettings
from fcer.training.validation_region import FireInterval, auroc_interval, gather_region, mean_asd

__all__ = ["Distilled", "distil", "settle_anchor"]

_SCHEMA = 2
"""Part of every key: raise it when the same inputs would give other weights, or a header that says other things."""


@dataclass(frozen=True)
class Distilled:
    """A student on disk, and how it came about."""

    folder: Path
    info: HeadInfo
    records: list[EpochRecord]
    """Every epoch; `score` is the validation AUROC near fire."""
    fitted: bool
    """False where the student was there already."""


def distil(
    teaching: Teaching,
    settings: HeadSettings,
    *,
    anchor: float | str,
    cache: Path,
    students: Path,
    joint: MemberSettings | None = None,
    on_epoch: OnEpoch | None = None,
) -> Distilled:
    """The student of `teaching`, fitted where it is not there yet.

    Args:
        teaching: who teaches whom, on which data.
        settings: how the head is fitted.
        anchor: radius of the region that chooses the epoch, in px or metres; `auto`: the ensemble's mean ASD.
        cache: folder of feature caches.
        students: folder of students.
        joint: train the backbone along, in this way; none: it stays as it is.
        on_epoch: called with each epoch's record while it is fitted.
    """
    # A student that is there needs no cache, unless its anchor has to be measured on one
    cached = cache_features(teaching, cache) if anchor == "auto" else None
    anchor_px = settle_anchor(anchor, cached)
    key = _key(teaching, settings, anchor_px, joint)
    years = "-".join(map(str, teaching.backbone.fold.test)) or "all"
    folder = students / f"{teaching.backbone.backbone.spec.arch}-{years}-{key[:12]}"
    if head_file(folder).exists():
        return Distilled(folder, read_head_info(folder), read_history(folder), fitted=False)

    cached = cached or cache_features(teaching, cache)
    resume = (folder / "fit.resume", key)
    region = gather_region(cached.validation, anchor_px)
    if joint is None:
        task = HeadTask.of(cached.training, cached.validation, region, settings.target)
        fitted = fit_head(task, settings, resume=resume, on_epoch=on_epoch)
        head, records = fitted.head, fitted.records
        near_fire = region.ranked(head)
        backbone, backbone_info = teaching.backbone.original()
    else:
        backbone, backbone_info, head, records, near_fire = fit_jointly(
            teaching, cached, settings, joint, anchor_px, resume=resume, on_epoch=on_epoch
        )
    interval = auroc_interval(near_fire, _fire_of_samples(teaching.validation()), settings.seed)
    info = _info(teaching, settings, head, records, interval, anchor_px, key, frozen=joint is None)
    _write(folder, backbone, backbone_info, head, info, records)
    resume[0].unlink(missing_ok=True)
    return Distilled(folder, read_head_info(folder), records, fitted=True)


def settle_anchor(anchor: float | str, cached: FeatureCache | None) -> float:
    """The anchor in px; `auto` is the ensemble's mean ASD on the validation years, which takes a cache to tell."""
    if anchor != "auto":
        return radius_in_pixels(anchor)
    if cached is None:
        raise ValueError("auto takes a cache")
    return mean_asd(cached.validation)


def read_history(folder: Path) -> list[EpochRecord]:
    """Every epoch of the student in `folder`."""
    return [EpochRecord(**record) for record in json.loads((folder / "history.json").read_text())]


def _key(teaching: Teaching, settings: HeadSettings, anchor_px: float, joint: MemberSettings | None) -> str:
    decided_by = {
        "cache": cache_key(teaching),
        "head": asdict(settings),
        "anchor_px": anchor_px,
        "joint": None if joint is None else joint.deciding(),
    }
    return Step(_SCHEMA, decided_by).key


def _fire_of_samples(samples: Samples) -> IntArray:
    """Which of the fires each sample is of."""
    place = {fire: k for k, fire in enumerate(samples.fires)}
    return np.array([place[samples.locate(k)[0]] for k in range(len(samples))])


def _info(
    teaching: Teaching,
    settings: HeadSettings,
    head: UncertaintyHead,
    records: list[EpochRecord],
    interval: FireInterval,
    anchor_px: float,
    key: str,
    *,
    frozen: bool,
) -> HeadInfo:
    fold, kept = teaching.backbone.fold, best_epoch(records)
    return HeadInfo(
        features=head.spec.features,
        hidden=head.spec.hidden,
        logit=head.spec.logit,
        loss=settings.loss,
        target=settings.target,
        frozen=frozen,
        anchor_px=anchor_px,
        val_auroc=records[kept - 1].score,
        val_auroc_low=interval.low,
        val_auroc_high=interval.high,
        val_fires=interval.fires,
        val_years=fold.validation,
        epoch=kept,
        backbone="",  # known once its file is written
        teachers=tuple(member.digest for member in teaching.teachers),
        dataset_fingerprint=teaching.dataset.fingerprint((*fold.train, *fold.validation)),
        code_version=__version__,
        key=key,
    )


def _write(
    folder: Path,
    backbone: Backbone,
    backbone_info: CheckpointInfo,
    head: UncertaintyHead,
    info: HeadInfo,
    records: list[EpochRecord],
) -> None:
    """The history first: where the head is, all is there."""
    with atomic_path(folder / "history.json") as partial:
        partial.write_text(json.dumps([record._asdict() for record in records], indent=1) + "\n")
    save_student(folder, backbone, backbone_info, head, info)

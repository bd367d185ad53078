"""From an ensemble to its student: cache, anchor, fit, and a folder that holds all that predicting needs.

The folder is named by everything that decides the student. One that is there is taken as it is; one whose making was
killed is finished, and ends with the weights that it would have had.
"""

import math
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fcer import __version__
from fcer.core.regions import radius_in_pixels
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import CheckpointError, ConfigError, FcerWarning
from fcer.models.student_files import HeadInfo, head_file, read_head_info, save_student
from fcer.runtime.steps import Step
from fcer.training.epochs import EpochRecord, OnEpoch, still_rising
from fcer.training.error_head import MemberErrors, fit_error_head
from fcer.training.feature_cache import FeatureCache, cache_features, cache_key, cache_validation, fires_of
from fcer.training.feature_methods import fit_feature_methods
from fcer.training.feature_shards import ERROR
from fcer.training.fire_scores import scores_by_fire, write_fire_scores
from fcer.training.head import HeadTask, fit_head
from fcer.training.head_settings import HeadSettings
from fcer.training.history import history_of, read_epochs, write_history
from fcer.training.joint import FittedStudent, fit_jointly
from fcer.training.settings import MemberSettings
from fcer.training.teaching import ENSEMBLE, Teaching
from fcer.training.validation_region import auroc_interval, gather_region, mean_asd
from fcer.uncertainty.feature_fits import save_fits

__all__ = ["Distilled", "distil", "settle_anchor"]

_SCHEMA = 5
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
    threshold: float = FIRE_THRESHOLD,
    on_epoch: OnEpoch | None = None,
) -> Distilled:
    """The student of `teaching`, fitted where it is not there yet.

    Parameters
    ----------
    teaching
        Who teaches whom, on which data.
    settings
        How the head is fitted.
    anchor
        Radius of the region that chooses the epoch, in px or metres; `auto`: the ensemble's mean ASD.
    cache
        Folder of feature caches.
    students
        Folder of students.
    joint
        Train the backbone along, in this way; none: it stays as it is.
    threshold
        Probability above which a pixel counts as predicted fire where the backbone's errors are looked for.
    on_epoch
        Called with each epoch's record while it is fitted.
    """
    if settings.target == ERROR and joint is not None:
        raise ConfigError(
            "head_target: the errors of a backbone that is trained along move with it; give --freeze true, or choose "
            "another --head-target"
        )
    # A student that is there needs no cache, unless its anchor has to be measured on one
    cached = cache_features(teaching, cache) if anchor == "auto" else None
    anchor_px = settle_anchor(anchor, cached, threshold)
    key = _key(teaching, settings, anchor_px, joint, threshold)
    years = "-".join(map(str, teaching.backbone.fold.test)) or "all"
    folder = students / f"{teaching.backbone.backbone.spec.arch}-{years}-{key[:12]}"
    planned = settings.epochs if joint is None else joint.epochs
    if head_file(folder).exists():
        info = read_head_info(folder)
        _warn_if_still_rising(info, planned)
        return Distilled(folder, info, read_history(folder), fitted=False)

    cached = cached or cache_features(teaching, cache)
    resume = (folder / "fit.resume", key)
    how: Any = {"resume": resume, "on_epoch": on_epoch}
    fitted = _fit(teaching, settings, joint, cached, anchor_px, threshold, how)
    if joint is None:
        save_fits(folder, key, fit_feature_methods(cached.training, teaching.backbone, teaching.views))
    chosen = {"frozen": joint is None, "anchor_px": anchor_px, "threshold": threshold, "key": key}
    fire_N = fires_of(teaching.validation())
    write_fire_scores(folder, scores_by_fire(fitted.near_fire, fire_N))
    _write(folder, fitted, _info(teaching, settings, fitted, fire_N, **chosen))
    resume[0].unlink(missing_ok=True)
    info = read_head_info(folder)
    _warn_if_still_rising(info, planned)
    return Distilled(folder, info, fitted.records, fitted=True)


def _fit(
    teaching: Teaching,
    settings: HeadSettings,
    joint: MemberSettings | None,
    cached: FeatureCache,
    anchor_px: float,
    threshold: float,
    how: Any,
) -> FittedStudent:
    """The head by what it is taught, alone or with its backbone."""
    # first, whoever needs it: where nothing can be ranked, nothing is fitted
    region = gather_region(cached.validation, anchor_px, threshold)
    if joint is not None:
        return fit_jointly(teaching, cached, settings, joint, anchor_px, threshold=threshold, **how)
    if settings.target == ERROR:
        own = MemberErrors.of(cached.validation, fires_of(teaching.validation()), anchor_px, threshold)
        others = [] if settings.decoder else _other_members(teaching, cached.folder.parent, anchor_px, threshold)
        fitted = fit_error_head([own, *others], settings, threshold=threshold, **how)
    else:
        fitted = fit_head(HeadTask.of(cached.training, cached.validation, region, settings.target), settings, **how)
    backbone, info = teaching.backbone.original()
    return FittedStudent(backbone, info, fitted.head, fitted.records, fitted.best_epoch, fitted.near_fire)


def _other_members(teaching: Teaching, cache: Path, anchor_px: float, threshold: float) -> list[MemberErrors]:
    """The validation years of the ensemble's other members, each by the member that did not learn from them."""
    others = []
    for member in teaching.teachers:
        if member is teaching.backbone or set(member.fold.validation) & set(teaching.backbone.fold.validation):
            continue
        alone = replace(teaching, teachers=[member], backbone=member, teacher=ENSEMBLE)
        fire_N = fires_of(alone.validation())
        others.append(MemberErrors.of(cache_validation(alone, cache), fire_N, anchor_px, threshold))
    return others


def settle_anchor(anchor: float | str, cached: FeatureCache | None, threshold: float = FIRE_THRESHOLD) -> float:
    """The anchor in px; `auto` is the ensemble's mean ASD on the validation years, which takes a cache to tell."""
    if anchor != "auto":
        return radius_in_pixels(anchor)
    if cached is None:
        raise ValueError("auto takes a cache")
    return mean_asd(cached.validation, threshold)


def _warn_if_still_rising(info: HeadInfo, planned: int) -> None:
    if still_rising(info.epoch, planned):
        which = "head" if info.frozen else "member"
        warnings.warn(
            f"student: its best epoch is {info.epoch} of {planned}, so that it was still getting better when fitting "
            f"ended; give more --{which}-epochs, or a higher --{which}-lr",
            FcerWarning,
            3,
        )


def read_history(folder: Path) -> list[EpochRecord]:
    """Every epoch of the student in `folder`."""
    path = history_of(folder)
    try:
        return read_epochs(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error}); remove the folder {folder.name}, and the student is distilled again"
        ) from None


def _key(
    teaching: Teaching, settings: HeadSettings, anchor_px: float, joint: MemberSettings | None, threshold: float
) -> str:
    decided_by = {
        "cache": cache_key(teaching),
        "head": asdict(settings),
        "anchor_px": anchor_px,
        "joint": None if joint is None else joint.deciding(),
        "threshold": threshold,
    }
    return Step(_SCHEMA, decided_by).key


def _info(
    teaching: Teaching, settings: HeadSettings, fitted: FittedStudent, fire_N: list[str], **chosen: Any
) -> HeadInfo:
    """What the header says; `chosen` are its fields that were decided beforehand."""
    fold, spec = teaching.backbone.fold, fitted.head.spec
    near_fire = fitted.near_fire
    interval = auroc_interval(near_fire, np.unique(fire_N, return_inverse=True)[1], settings.seed)
    within = near_fire.auroc_within()
    return HeadInfo(
        features=spec.features,
        hidden=spec.hidden,
        logit=spec.logit,
        context=spec.context,
        fire=spec.fire,
        decoder=spec.decoder,
        loss=settings.loss,
        target=settings.target,
        val_auroc=fitted.records[fitted.best_epoch - 1].score,
        val_auroc_low=interval.low,
        val_auroc_high=interval.high,
        val_fires=interval.fires,
        val_auroc_within=None if math.isnan(within) else within,
        val_nll=near_fire.nll(),
        val_years=fold.validation,
        epoch=fitted.best_epoch,
        backbone="",  # known once its file is written
        teachers=tuple(member.digest for member in teaching.teachers),
        dataset_fingerprint=teaching.dataset.fingerprint((*fold.train, *fold.validation)),
        code_version=__version__,
        **chosen,
    )


def _write(folder: Path, fitted: FittedStudent, info: HeadInfo) -> None:
    """The history first: where the head is, all is there."""
    write_history(history_of(folder), fitted.records)
    save_student(folder, fitted.backbone, fitted.info, fitted.head, info)

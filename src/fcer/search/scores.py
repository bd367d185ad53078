"""What a trial is worth: a head fitted on cached features, and scored near fire on the validation years.

Shape suffixes: B samples, K passes of the teacher, F features, P pixels.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.core.arrays import FloatArray
from fcer.core.ranking import auprc, auroc, rank_counts
from fcer.core.regions import fire_region
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import FcerError
from fcer.training.epochs import EpochRecord
from fcer.training.error_head import MemberErrors, fit_error_head
from fcer.training.feature_cache import FeatureCache
from fcer.training.feature_shards import ERROR, CachedSplit
from fcer.training.head import HeadTask, fit_head
from fcer.training.head_settings import HeadSettings
from fcer.training.validation_region import ValidationRegion, gather_region

__all__ = ["HeadTrials", "Scores", "reference_scores"]


class Scores(NamedTuple):
    """Of the best epoch, by AUROC, within the anchor of fire on the validation years."""

    auroc: float
    """How well the student's uncertainty ranks the backbone's errors above what it has right."""
    auprc: float
    """The same as average precision."""
    fidelity: float
    """Spearman's rank correlation with the teacher's uncertainty, whatever the student was taught: the paper's
    normalised standard deviation."""
    epoch: int
    auroc_within: float = math.nan
    """AUROC among pixels that the backbone predicted alike: what is left of it when the class is known."""


class HeadTrials:
    """All that trials share: what is cached, and the pixels near fire."""

    def __init__(self, cached: FeatureCache, anchor_px: float, threshold: float = FIRE_THRESHOLD) -> None:
        self._training = cached.training.widened()  # once: every target's task shares it
        self._validation, self._fires = cached.validation, cached.fires
        self._anchor_px, self._threshold = anchor_px, threshold
        self._region = gather_region(cached.validation, anchor_px, threshold)
        self._teacher_ranks_P = _ranks(_teacher_uncertainty(cached.validation, anchor_px))
        self._tasks: dict[str, HeadTask] = {}

    def fit(self, settings: HeadSettings, on_epoch: Callable[[EpochRecord], None]) -> Scores:
        """Fit one head and score it; `on_epoch` may raise to stop it."""
        if np.ptp(self._teacher_ranks_P) == 0:
            raise FcerError(
                "teacher: its uncertainty is the same everywhere near fire, so that nothing can be compared with it; "
                "train members that differ, or choose another --anchor"
            )
        target = settings.target
        if target == ERROR:
            # of the backbone alone: other members' validation years are not in its cache
            own = MemberErrors.of(self._validation, self._fires, self._anchor_px, self._threshold)
            fitted = fit_error_head([own], settings, threshold=self._threshold, on_epoch=on_epoch)
        else:
            if target not in self._tasks:
                self._tasks[target] = HeadTask.of(self._training, self._validation, self._region, target)
            fitted = fit_head(self._tasks[target], settings, on_epoch=on_epoch, bar=False)
        return self._score(fitted.near_fire.uncertainty_P, fitted.best_epoch)

    def _score(self, uncertainty_P: FloatArray, best_epoch: int) -> Scores:
        if np.ptp(uncertainty_P) == 0:
            raise FcerError("head: its uncertainty is the same everywhere near fire; try a lower --head-lr")
        counts = rank_counts(self._region.error_P, uncertainty_P)
        fidelity = float(np.corrcoef(_ranks(uncertainty_P), self._teacher_ranks_P)[0, 1])
        within = self._region.ranked_by(uncertainty_P).auroc_within()
        return Scores(float(auroc(counts)), float(auprc(counts)), fidelity, best_epoch, within)


def reference_scores(region: ValidationRegion) -> dict[str, dict[str, float]]:
    """What needs no head, on the same pixels: the entropy of the backbone, and its probability as an uncertainty."""
    # entropy falls with the distance of the logit from zero, the probability rises with the logit
    ranked = {"entropy": -np.abs(region.logit_P), "probability": region.logit_P}
    return {
        name: {"auroc": one.auroc(), "auroc_within": one.auroc_within()}
        for name, one in ((name, region.ranked_by(values)) for name, values in ranked.items())
    }


def _teacher_uncertainty(split: CachedSplit, anchor_px: float) -> FloatArray:
    """Of the region's pixels, in the order in which `gather_region` has them."""
    parts, start, taught_NP = [], 0, split.targets("std").numpy()
    for block in split.blocks():
        y_BP = block.y_BP.numpy().astype(bool)
        for k in np.flatnonzero(y_BP.any(1)):
            near_P = fire_region(y_BP[k].reshape(split.side, split.side), anchor_px).ravel()
            parts.append(taught_NP[start + k, near_P])
        start += len(y_BP)
    return np.concatenate(parts)


def _ranks(values_P: NDArray[np.floating]) -> FloatArray:
    """From 1 on; equal values share the mean of their places."""
    _, place_P, ties = np.unique(values_P, return_inverse=True, return_counts=True)
    return np.asarray((ties.cumsum() - (ties - 1) / 2)[place_P])

"""The pixels near fire that decide which epoch is kept, gathered once: validation costs one product and one sort.

Shape suffixes: N samples, B samples of a block, K passes of the teacher, R numbers of a pixel, P pixels.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.bootstrap import bootstrap_ranking, draw_fires, percentile_interval
from fcer.core.calibration import nll_loss
from fcer.core.ranking import auroc, auroc_within, class_counts, rank_counts
from fcer.core.regions import fire_region
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.surface import surface_losses
from fcer.errors import ConfigError, DataError
from fcer.models.student import CONTEXT_ROWS, FIRE_ROWS, UncertaintyHead
from fcer.models.thresholds import threshold_logit
from fcer.training.feature_shards import CachedSplit

__all__ = ["FireInterval", "RankedPixels", "ValidationRegion", "auroc_interval", "gather_region", "mean_asd"]

_DRAWS = 1000
_LOGIT = -1 - CONTEXT_ROWS - FIRE_ROWS
"""Its row among all numbers of a pixel, from behind."""


class RankedPixels(NamedTuple):
    """Pixels near fire, and how a student ranks them."""

    error_P: BoolArray
    """Where its backbone is wrong."""
    uncertainty_P: FloatArray
    sample_P: IntArray
    """Which sample of the validation years each is of."""
    predicted_P: BoolArray
    """Where its backbone predicts fire."""
    logit_P: FloatArray
    """Of fire, as its backbone has it."""

    def auroc(self) -> float:
        """How well the uncertainty ranks the errors above what is right; NaN with one of both only."""
        return float(auroc(rank_counts(self.error_P, self.uncertainty_P)))

    def auroc_within(self) -> float:
        """The same among pixels that were predicted alike; NaN where no such pair is there."""
        return float(auroc_within(class_counts(self.error_P, self.uncertainty_P, self.predicted_P)))

    def nll(self) -> float:
        """Mean negative log-likelihood of what burnt under the backbone's probability."""
        return nll_loss(self.error_P ^ self.predicted_P, expit(self.logit_P.astype(np.float64)))


class FireInterval(NamedTuple):
    """Where an AUROC plausibly lies (95 %), had the years had other fires of their kind."""

    low: float
    high: float
    fires: int
    """How many it is drawn from; one alone says nothing of others, and both ends are its AUROC."""


class ValidationRegion(NamedTuple):
    """Every pixel at most the anchor from fire, of all images with fire."""

    rows_RP: Tensor
    """All numbers of a pixel: features, below them the backbone's logit, then its mean probability in windows."""
    error_P: NDArray[np.bool_]
    """Where the backbone is wrong."""
    sample_P: NDArray[np.int64]
    """Which sample of the split each pixel is of."""
    predicted_P: NDArray[np.bool_]
    """Where the backbone predicts fire."""

    @property
    def logit_P(self) -> NDArray[np.float32]:
        """Of fire, as the backbone has it."""
        logit_P: NDArray[np.float32] = self.rows_RP[_LOGIT].numpy()
        return logit_P

    def auroc(self, head: UncertaintyHead) -> float:
        """How well the head's uncertainty ranks the backbone's errors above what it has right."""
        return self.ranked(head).auroc()

    def ranked(self, head: UncertaintyHead) -> RankedPixels:
        """The region as the head ranks it."""
        return self.ranked_by(self.uncertainty(head))

    def ranked_by(self, uncertainty_P: FloatArray) -> RankedPixels:
        """The region as any uncertainty ranks it."""
        return RankedPixels(self.error_P, uncertainty_P, self.sample_P, self.predicted_P, self.logit_P)

    @torch.no_grad()
    def uncertainty(self, head: UncertaintyHead) -> NDArray[np.float32]:
        """What the head says of each pixel, from 0 to 1."""
        uncertainty_P: NDArray[np.float32] = head.of_pixels(self.rows_RP[None])[0].sigmoid().numpy()
        return uncertainty_P


def gather_region(split: CachedSplit, anchor_px: float, threshold: float = FIRE_THRESHOLD) -> ValidationRegion:
    """The region of a cached split; refused where the backbone makes no error in it, or nothing else.

    Fire is predicted where the probability is above the threshold.
    """
    above = threshold_logit(threshold)
    inputs, burnt, samples = [], [], []
    start = 0
    for block in split.blocks():
        y_BP = block.y_BP.numpy().astype(bool)
        with_fire = np.flatnonzero(y_BP.any(1))
        near = np.zeros_like(y_BP)
        for k in with_fire:
            near[k] = fire_region(y_BP[k].reshape(split.side, split.side), anchor_px).ravel()
        context_BWP = split.context(block)
        for k in with_fire:
            pixels = torch.from_numpy(np.flatnonzero(near[k]))
            numbers = (block.features_BFP[k].float(), block.logits_BP[k][None], context_BWP[k])
            inputs.append(torch.cat([rows[:, pixels] for rows in numbers]))
        burnt.append(y_BP[near])
        samples.append(start + np.nonzero(near)[0])
        start += len(y_BP)
    rows_RP = torch.cat(inputs, dim=1) if inputs else torch.empty(-_LOGIT, 0)
    predicted_P = (rows_RP[_LOGIT] > above).numpy()
    error_P = predicted_P != np.concatenate(burnt)
    if error_P.all() or not error_P.any():
        found = "no error" if error_P.size and not error_P.any() else "errors only" if error_P.size else "no pixel"
        raise DataError(
            f"validation years: the backbone makes {found} within {anchor_px:g} px of fire, so that the AUROC that "
            "chooses the epoch is undefined; add fires of these years, or choose another --anchor or --crop"
        )
    return ValidationRegion(rows_RP, error_P, np.concatenate(samples), predicted_P)


def auroc_interval(ranked: RankedPixels, fire_N: IntArray, seed: int) -> FireInterval:
    """The interval of the pixels' AUROC over draws of whole fires; `fire_N` says whose each sample is."""
    fires, fire_P = np.unique(fire_N[ranked.sample_P], return_inverse=True)
    draws = draw_fires(fires.size, _DRAWS, np.random.default_rng(seed))
    drawn, _ = bootstrap_ranking(ranked.uncertainty_P, ranked.error_P, fire_P, draws)
    return FireInterval(*percentile_interval(drawn), fires.size)


def mean_asd(split: CachedSplit, threshold: float = FIRE_THRESHOLD) -> float:
    """The ensemble's mean average surface distance in px, over the images in which it and the truth have fire."""
    distances = []
    for block in split.blocks():
        shape = (-1, split.side, split.side)
        # where another method teaches, its uncertainty is in the passes' place
        own = block.logits_BP.sigmoid() if split.has_one_teacher else block.passes_BKP.float().mean(1)
        predicted = own > threshold
        fire = block.y_BP.bool()
        distances.append(surface_losses(predicted.reshape(shape).numpy(), fire.reshape(shape).numpy()).asd)
    defined = np.concatenate(distances)
    defined = defined[~np.isnan(defined)]
    if not defined.size:
        raise ConfigError(
            "anchor: the ensemble misses every fire of the validation years and has no ASD; give it in px"
        )
    return float(defined.mean())

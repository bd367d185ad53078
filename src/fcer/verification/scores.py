"""How good one day's map was, once it is known what burnt."""

import math
import warnings
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.calibration import base_losses, brier_loss, nll_loss, skill_of
from fcer.core.ranking import auroc_score, auroc_within_score
from fcer.core.regions import PIXEL_METRES, fire_region
from fcer.core.segmentation import average_precision_score
from fcer.core.surface import asd_loss
from fcer.errors import UndefinedMetricWarning

__all__ = ["DayScores", "score_day", "zone_miss"]


class DayScores(NamedTuple):
    """NaN where a score is not defined: where nothing burnt, most are."""

    ap: float
    """Of the whole image."""
    lift: float
    """Its difference from the AP of persistence, relative to the sum of both: 0 is as good, 1 the best."""
    brier_skill: float
    """Within the anchor of fire, against a forecast of the region's own share of burnt pixels; so is the next."""
    nll_skill: float
    asd_m: float
    auroc: float
    """Of errors, by uncertainty, within the anchor of fire."""
    auroc_within: float
    """The same among pixels that were predicted alike."""
    burnt_pixels: int
    predicted_pixels: int


def score_day(
    burnt: BoolArray,
    probability: FloatArray,
    uncertainty: FloatArray,
    *,
    threshold: float,
    anchor_px: float,
    pixel_m: float = PIXEL_METRES,
    today: BoolArray | None = None,
) -> DayScores:
    """Scores of one map (H, W) against what burnt; pixels whose probability is NaN count for nothing.

    `today` is what burnt on the day that the forecast was made from, where that is known.
    """
    known = ~np.isnan(probability)
    burnt = burnt & known
    prob = np.where(known, probability, 0).astype(np.float64)
    predicted = prob > threshold
    near = fire_region(burnt, anchor_px) & known & burnt.any()
    n_near, n_burnt = np.count_nonzero(near), np.count_nonzero(burnt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # a day without fire is no news
        losses = (np.array(loss(burnt[near], prob[near])) for loss in (brier_loss, nll_loss))
        base = base_losses(np.array(n_burnt), np.array(n_near))
        skills = [float(skill_of(*both)) if n_near else math.nan for both in zip(losses, base, strict=True)]
        error = (predicted != burnt)[near]
        ap = average_precision_score(burnt[known], prob[known])
        persistence = math.nan if today is None else average_precision_score(burnt[known], today[known])
        return DayScores(
            ap=ap,
            lift=(ap - persistence) / (ap + persistence),
            brier_skill=skills[0],
            nll_skill=skills[1],
            asd_m=asd_loss(predicted, burnt) * pixel_m,
            auroc=auroc_score(error, uncertainty[near]),
            auroc_within=auroc_within_score(error, uncertainty[near], predicted[near]),
            burnt_pixels=int(n_burnt),
            predicted_pixels=int(np.count_nonzero(predicted)),
        )


def zone_miss(burnt: BoolArray, zone: BoolArray) -> float:
    """The share of what burnt that lies outside the zone; NaN where nothing burnt.

    >>> zone_miss(np.array([True, True, False]), np.array([True, False, False]))
    0.5
    """
    n = np.count_nonzero(burnt)
    return float(np.count_nonzero(burnt & ~zone) / n) if n else math.nan

"""A student's validation scores fire by fire: what a later student is compared with, on the same fires."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fcer.models.student_files import fire_scores_file
from fcer.runtime.sealed_text import write_sealed_json
from fcer.training.validation_region import RankedPixels

__all__ = ["FireScores", "scores_by_fire", "write_fire_scores"]

FireScores = dict[str, dict[str, float]]
"""By fire: `auroc`, `auroc_within` and `nll` within the anchor of fire, where defined, and how many `pixels` and
`errors` are behind them."""


def scores_by_fire(ranked: RankedPixels, fire_N: Sequence[str]) -> FireScores:
    """The scores of each fire that has pixels near fire; `fire_N` says whose each sample is."""
    fires, fire_P = np.unique(np.asarray(fire_N)[ranked.sample_P], return_inverse=True)
    scores = {}
    for k, fire in enumerate(fires):
        one = RankedPixels(*(values[fire_P == k] for values in ranked))
        values = {"auroc": one.auroc(), "auroc_within": one.auroc_within(), "nll": one.nll()}
        defined = {name: round(value, 6) for name, value in values.items() if not math.isnan(value)}
        scores[str(fire)] = {**defined, "pixels": one.error_P.size, "errors": int(one.error_P.sum())}
    return scores


def write_fire_scores(folder: Path, scores: FireScores) -> None:
    """As JSON, whole or not at all."""
    write_sealed_json(fire_scores_file(folder), {"fires": scores})

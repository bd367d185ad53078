"""Ranking scores of each fire image on its own, in several regions: what paired tests compare."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.near_fire import NearFire
from fcer.core.rank_counts import placed_counts
from fcer.core.ranking import auprc, auroc, auroc_within

__all__ = ["ImageScores", "image_scores"]


class ImageScores(NamedTuple):
    """(images, radii); scores are NaN where an image's region has no error, or nothing but errors."""

    auroc: FloatArray
    auprc: FloatArray
    auroc_within: FloatArray
    n_pixels: IntArray
    n_errors: IntArray


def image_scores(near: NearFire, unc: FloatArray, radii: Sequence[float]) -> ImageScores:
    """Score each image in the regions of some of `near.radii`, in any order; `unc` is in the list's order."""
    shape = near.n_images, len(radii)
    scores, counts = np.full((3, *shape), np.nan), np.zeros((2, *shape), dtype=np.int64)
    columns = np.argsort(radii)
    # rings of the list between two of these radii are one ring here
    ring = np.searchsorted(np.sort(radii), near.radii)[near.ring]
    for image, (start, stop) in enumerate(pairwise(near.edges)):
        by_class = placed_counts(unc[start:stop], near.cell[start:stop], ring[start:stop], len(radii))
        ranks = by_class.pooled
        scores[:, image, columns] = auroc(ranks), auprc(ranks), auroc_within(by_class)
        counts[:, image, columns] = ranks.n_positives + ranks.n_negatives, ranks.n_positives
    return ImageScores(*scores, *counts)

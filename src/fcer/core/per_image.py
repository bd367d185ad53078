"""Ranking scores of each fire image on its own, in several regions: what paired tests compare."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.near_fire import NearFire
from fcer.core.rank_counts import N_CELLS, place

__all__ = ["ImageScores", "image_scores"]


class ImageScores(NamedTuple):
    """(images, radii); scores are NaN where an image's region has no error, or nothing but errors."""

    auroc: FloatArray
    auprc: FloatArray
    auroc_within: FloatArray
    n_pixels: IntArray
    n_errors: IntArray


def image_scores(near: NearFire, unc: FloatArray, radii: Sequence[float]) -> ImageScores:
    """Score each image in the regions of some of `near.radii`, in any order; `unc` is in the list's order.

    An image has a few hundred pixels only, so all are done at once: keys tell images apart first and uncertainties
    within them second, and pixels are counted below and at each error's key.
    """
    # rings of the list between two of these radii are one ring here; what is beyond the last does not count
    ring = np.searchsorted(np.sort(radii), near.radii)[near.ring]
    some = ring < len(radii)
    values, rank = np.unique(unc[some], return_inverse=True)
    key = near.image[some] * values.size + rank
    cell = near.cell[some].astype(np.intp)
    errors = np.unique(key[cell % 2 == 1])
    image = errors // max(values.size, 1)
    # pixels of the regions (radii, cells, places), where an error's place is odd; and all of each image
    n_places = 2 * errors.size + 1
    row = ring[some] * N_CELLS + cell
    counted = np.bincount(row * n_places + place(key, errors), minlength=len(radii) * N_CELLS * n_places)
    regions = counted.reshape(len(radii), N_CELLS, n_places).cumsum(axis=0)
    n = np.bincount(row * near.n_images + near.image[some], minlength=len(radii) * N_CELLS * near.n_images)
    n = n.reshape(len(radii), N_CELLS, near.n_images).cumsum(axis=0)
    before = n.cumsum(axis=2) - n  # in images before
    below, tied = regions.cumsum(axis=2)[..., :-1:2] - before[..., image], regions[..., 1::2]
    scores = _scores(below, tied, n, image)
    order = np.argsort(np.argsort(radii))
    n_errors = n[:, 1] + n[:, 3]
    return ImageScores(*(column[order].T for column in (*scores, n.sum(axis=1), n_errors)))


def _scores(below: IntArray, tied: IntArray, n: IntArray, image: IntArray) -> list[FloatArray]:
    """AUROC, AUPRC and AUROC within the class (radii, images), from counts at errors (radii, cells, errors)."""

    def summed(values: FloatArray) -> FloatArray:
        """Over each image's errors."""
        bins = image + n.shape[2] * np.arange(len(n))[:, None]
        sums = np.bincount(bins.ravel(), weights=values.ravel(), minlength=n[:, 0].size)
        return np.asarray(sums.reshape(n[:, 0].shape))

    missed, alarms = (summed(tied[:, k + 1] * (2.0 * below[:, k] + tied[:, k])) for k in (0, 2))
    all_below, all_tied = below[:, 0::2].sum(axis=1), tied[:, 0::2].sum(axis=1)  # of right pixels
    errors_below, errors_tied = below[:, 1::2].sum(axis=1), tied[:, 1::2].sum(axis=1)
    won = summed(errors_tied * (2.0 * all_below + all_tied))
    n_errors, n_right = n[:, 1] + n[:, 3], n[:, 0] + n[:, 2]
    errors_above = n_errors[:, image] - errors_below
    precision = errors_above / np.maximum(errors_above + n_right[:, image] - all_below, 1)
    pairs = n_errors * n_right
    with np.errstate(invalid="ignore"):
        auprc = np.where(pairs > 0, summed(errors_tied * precision) / n_errors, np.nan)
        within = (missed + alarms) / (2 * (n[:, 1] * n[:, 0] + n[:, 3] * n[:, 2]))
        return [won / (2 * pairs), auprc, within]

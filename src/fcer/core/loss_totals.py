"""Losses of fire probabilities in nested regions: sums that come out the same in whatever order images are added."""

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import ECE_BINS, ReliabilityCurve, base_losses, log_losses, skill_of, width_bin
from fcer.core.exact_sums import add_whole, sum_of, whole_terms
from fcer.core.near_fire import NearFire

__all__ = ["LOSSES", "LossTotals"]

LOSSES = ("brier", "nll")


class LossTotals:
    """Brier score, likelihood and calibration of one method, by ring; the last row is the full image.

    Sums of probabilities and losses are kept as whole numbers, image by image.
    """

    def __init__(self, n_rings: int) -> None:
        self._n_rings = n_rings
        self._losses = np.zeros((2, len(LOSSES), n_rings + 1), np.int64)
        self._bin_prob = np.zeros((2, n_rings + 1, ECE_BINS), np.int64)
        self._bin_pixels, self._bin_burnt = np.zeros((2, n_rings, ECE_BINS), np.int64)

    def update(self, near: NearFire, burnt: BoolArray, prob: FloatArray) -> FloatArray:
        """Add some images' pixels; gives the losses summed by image and ring (losses, images, rings)."""
        prob = prob.astype(np.float64)
        shape = near.n_images, self._n_rings
        cell = near.image * self._n_rings + near.ring
        starts = np.cumsum(near.image_pixels) - near.image_pixels
        by_ring = np.empty((len(LOSSES), *shape))
        for k, losses in enumerate(((prob - burnt) ** 2, log_losses(burnt, prob))):
            by_ring[k] = np.bincount(cell, losses[near.position], minlength=np.prod(shape)).reshape(shape)
            by_image = np.column_stack([by_ring[k], np.add.reduceat(losses, starts)])
            self._losses[:, k] += whole_terms(by_image).sum(axis=1)
        self._update_bins(near, prob, cell)
        return by_ring

    def _update_bins(self, near: NearFire, prob: FloatArray, cell: IntArray) -> None:
        bins = width_bin(prob, ECE_BINS)
        shape = near.n_images, self._n_rings, ECE_BINS
        place, size = cell * ECE_BINS + bins[near.position], int(np.prod(shape))
        self._bin_pixels += np.bincount(place, minlength=size).reshape(shape).sum(axis=0)
        self._bin_burnt += np.bincount(place[near.burnt], minlength=size).reshape(shape).sum(axis=0)
        rings = np.bincount(place, weights=prob[near.position], minlength=size).reshape(shape)
        bins += np.repeat(np.arange(near.n_images) * ECE_BINS, near.image_pixels)
        full = np.bincount(bins, weights=prob, minlength=near.n_images * ECE_BINS).reshape(-1, 1, ECE_BINS)
        self._bin_prob += whole_terms(np.concatenate([rings, full], axis=1)).sum(axis=1)

    def merge(self, other: "LossTotals") -> None:
        """Add another's."""
        add_whole(self._losses, other._losses)
        add_whole(self._bin_prob, other._bin_prob)
        self._bin_pixels += other._bin_pixels
        self._bin_burnt += other._bin_burnt

    def columns(self, n_pixels: IntArray) -> dict[str, FloatArray]:
        """Mean losses, their skill and the calibration error of each region, of which the pixels are known."""
        burnt = self._bin_burnt.cumsum(axis=0)
        burnt = np.concatenate([burnt, burnt[-1:]])  # what burnt is near fire, and all there is in the full image
        with np.errstate(invalid="ignore"):  # NaN in an empty region, which is what the mean of no pixels is
            means = {
                name: _of_regions(sums) / n_pixels for name, sums in zip(LOSSES, sum_of(self._losses), strict=True)
            }
            ece = np.abs(_of_regions(sum_of(self._bin_prob)) - burnt).sum(axis=1) / n_pixels
            base_rate = burnt.sum(axis=1) / n_pixels
        base = base_losses(burnt.sum(axis=1), n_pixels)
        skills = {f"{name}_skill": skill_of(means[name], of_base) for name, of_base in zip(LOSSES, base, strict=True)}
        return {**means, **skills, "ece": ece, "base_rate": base_rate}

    def reliability(self, ring: int) -> ReliabilityCurve:
        """In bins of equal width, in the region that ends with a ring."""
        rings = slice(ring + 1)
        count, burnt = (bins[rings].sum(axis=0) for bins in (self._bin_pixels, self._bin_burnt))
        prob = sum_of(self._bin_prob[:, rings].sum(axis=1))
        edges, some = np.linspace(0, 1, ECE_BINS + 1), np.flatnonzero(count)
        n = count[some]
        return ReliabilityCurve(edges[some], edges[some + 1], n, prob[some] / n, burnt[some] / n)


def _of_regions(rows: FloatArray) -> FloatArray:
    """Rings and the full image, as regions and the full image."""
    return np.concatenate([rows[:-1].cumsum(axis=0), rows[-1:]])

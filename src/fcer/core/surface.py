"""Distances between the edges of a predicted and a true fire.

A mask's boundary is its outer ring: the pixels that share a side with it and are not in it. Inside an image,
a mask that is empty or fills the image has none.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.spatial.distance import cdist

from fcer.core.arrays import BoolArray, FloatArray
from fcer.errors import UndefinedMetricWarning

__all__ = ["SurfaceLosses", "asd_loss", "boundary", "hausdorff95_loss", "surface_losses"]

_PAIRS_AT_ONCE = 30_000  # of boundary pixels: beyond, a distance transform is faster than all distances


class SurfaceLosses(NamedTuple):
    """In pixels, one value per image; NaN where one of the two masks has no boundary."""

    asd: FloatArray
    hausdorff95: FloatArray


def asd_loss(predicted: ArrayLike, fire: ArrayLike) -> float:
    """Average surface distance of two masks (H, W) in pixels: the mean of the two directed means.

    >>> asd_loss([[1, 1, 0, 0, 0, 0]], [[1, 1, 1, 1, 0, 0]])
    2.0
    """
    return _warn_undefined(float(_losses_of_one(predicted, fire).asd[0]), "average surface distance")


def hausdorff95_loss(predicted: ArrayLike, fire: ArrayLike) -> float:
    """The larger of the two directed 95th percentiles of boundary distances of two masks (H, W), in pixels.

    >>> hausdorff95_loss([[1, 1, 0, 0, 0, 0]], [[1, 1, 1, 1, 0, 0]])
    2.0
    """
    return _warn_undefined(float(_losses_of_one(predicted, fire).hausdorff95[0]), "Hausdorff distance")


def surface_losses(predicted: BoolArray, fire: BoolArray, inside: BoolArray | None = None) -> SurfaceLosses:
    """ASD and Hausdorff-95 of each image of two stacks of masks (N, H, W).

    Where images are padded to one size, `inside` says which pixels are theirs; no mask reaches beyond.
    """
    asd, hausdorff95 = np.full((2, len(fire)), np.nan)
    edges = boundary(predicted), boundary(fire)
    if inside is not None:  # an image's edge is no boundary, and neither is what was added beyond it
        edges = edges[0] & inside, edges[1] & inside
    for i, (ours, theirs) in enumerate(zip(*edges, strict=True)):
        there, back = _directed_distances(ours, theirs)
        if there.size and back.size:
            asd[i] = (there.mean() + back.mean()) / 2
            hausdorff95[i] = max(_percentile95(there), _percentile95(back))
    return SurfaceLosses(asd, hausdorff95)


def boundary(masks: BoolArray) -> BoolArray:
    """The outer ring of each mask (..., H, W): its side neighbours that are not in it.

    >>> boundary(np.array([[False, True, False, False]])).tolist()
    [[True, False, True, False]]
    """
    grown = masks.copy()
    grown[..., 1:, :] |= masks[..., :-1, :]
    grown[..., :-1, :] |= masks[..., 1:, :]
    grown[..., 1:] |= masks[..., :-1]
    grown[..., :-1] |= masks[..., 1:]
    return grown & ~masks


def _losses_of_one(predicted: ArrayLike, fire: ArrayLike) -> SurfaceLosses:
    return surface_losses(np.asarray(predicted, dtype=bool)[None], np.asarray(fire, dtype=bool)[None])


def _directed_distances(ours: BoolArray, theirs: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Distance from each boundary pixel to the nearest of the other boundary; both empty if either is."""
    here, there = np.argwhere(ours), np.argwhere(theirs)
    if not here.size or not there.size:
        return np.empty(0), np.empty(0)
    if len(here) * len(there) <= _PAIRS_AT_ONCE:
        squares = cdist(here, there, "sqeuclidean")
        return np.sqrt(squares.min(axis=1)), np.sqrt(squares.min(axis=0))
    # both boundaries lie in this box, and so do the shortest ways between them
    low, high = np.minimum(here.min(axis=0), there.min(axis=0)), np.maximum(here.max(axis=0), there.max(axis=0))
    box = slice(low[0], high[0] + 1), slice(low[1], high[1] + 1)
    ours, theirs = ours[box], theirs[box]
    return (
        np.asarray(ndimage.distance_transform_edt(~theirs))[ours],
        np.asarray(ndimage.distance_transform_edt(~ours))[theirs],
    )


def _percentile95(distances: FloatArray) -> float:
    """np.percentile(distances, 95), at a tenth of its cost for the few hundred pixels of one boundary."""
    place = 0.95 * (distances.size - 1)
    low = math.floor(place)
    ascending = np.sort(distances)
    high = ascending[min(low + 1, distances.size - 1)]
    return float(ascending[low] + (place - low) * (high - ascending[low]))


def _warn_undefined(loss: float, metric: str) -> float:
    if math.isnan(loss):
        reason = "of a mask without a boundary is undefined and is NaN"
        warnings.warn(f"the {metric} {reason}", UndefinedMetricWarning, stacklevel=3)
    return loss

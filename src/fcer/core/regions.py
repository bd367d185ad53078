"""Fire-Centered Evaluation Regions: every pixel at most a radius from fire.

Regions of growing radius are nested, so each pixel needs only the first region that holds it: its ring.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from fcer.core.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "DEFAULT_RADII",
    "PIXEL_METRES",
    "check_radii",
    "distance_to_fire",
    "fire_region",
    "pixels_inside",
    "radius_in_pixels",
    "ring_index",
]

PIXEL_METRES = 375.0
"""Side of one pixel of WildfireSpreadTS, VIIRS's native resolution."""

DEFAULT_RADII: tuple[float, ...] = (*(float(r) for r in range(11)), math.inf)
"""The paper's sweep: 0 to 10 pixels, then the full image."""


def radius_in_pixels(radius: float | str) -> float:
    """A radius in pixels, from pixels (`"4px"` too) or from metres written as `"1500m"`.

    >>> radius_in_pixels(4), radius_in_pixels("1500m"), radius_in_pixels("2.5"), radius_in_pixels("3px")
    (4.0, 4.0, 2.5, 3.0)
    """
    word = str(radius).strip().lower()
    pixels = float(word[:-1]) / PIXEL_METRES if word.endswith("m") else float(word.removesuffix("px"))
    if not pixels >= 0:
        raise ValueError(f"a radius is 0 or more, not {radius!r}")
    return pixels


def distance_to_fire(fire: ArrayLike) -> FloatArray:
    """Euclidean distance in pixels from each pixel of one image (H, W) to its nearest fire pixel.

    Infinite everywhere in an image without fire.
    """
    mask = np.asarray(fire, dtype=bool)
    if not mask.any():
        return np.full(mask.shape, np.inf)
    return np.asarray(ndimage.distance_transform_edt(~mask), dtype=np.float64)


def fire_region(fire: ArrayLike, radius: float) -> BoolArray:
    """The pixels of one image (H, W) at most `radius` pixels from fire; all of them for infinity.

    >>> fire_region([[0, 0, 0], [0, 1, 0], [0, 0, 0]], radius=1).astype(int)
    array([[0, 1, 0],
           [1, 1, 1],
           [0, 1, 0]])
    """
    return np.asarray(distance_to_fire(fire) <= radius)


def ring_index(fire: ArrayLike, radii: Sequence[float]) -> IntArray:
    """For each pixel of images (N, H, W), the first of the ascending `radii` whose region holds it.

    A pixel lies in the region of radius `radii[k]` exactly if its ring is at most k; `len(radii)` says that
    it lies in none.

    >>> ring_index([[[1, 0, 0, 0]]], radii=[0, 2]).tolist()
    [[[0, 1, 1, 2]]]
    """
    edges = check_radii(radii)
    masks = np.asarray(fire, dtype=bool)
    finite = edges[np.isfinite(edges)]
    # pixels beyond the largest finite radius need no distance: they are in the full image's ring or in none
    rings = np.full(masks.shape, finite.size, dtype=np.min_scalar_type(edges.size))
    if finite.size:
        margin = math.ceil(finite[-1])
        for mask, ring in zip(masks, rings, strict=True):
            box = _box_around(mask, margin)
            if box is not None:
                ring[box] = np.searchsorted(finite, distance_to_fire(mask[box]))
    return rings


def pixels_inside(maps: np.ndarray[Any, Any], inside: BoolArray | None) -> np.ndarray[Any, Any]:
    """The pixels of maps (N, H, W) that belong to their images, image by image, row by row.

    `inside` says which do where images are padded to one size; None: all of them.
    """
    return maps.ravel() if inside is None else maps[inside]


def check_radii(radii: Sequence[float]) -> FloatArray:
    """The radii as an array, or a ValueError where they are not ascending, negative or NaN."""
    edges = np.asarray(radii, dtype=np.float64)
    if edges.ndim != 1 or not edges.size or not edges[0] >= 0 or not (np.diff(edges[np.isfinite(edges)]) > 0).all():
        raise ValueError(f"radii are ascending numbers from 0 on, not {radii!r}")
    if np.isnan(edges).any() or np.isinf(edges[:-1]).any():
        raise ValueError(f"only the last radius may be infinite, and none NaN, in {radii!r}")
    return edges


def _box_around(mask: BoolArray, margin: int) -> tuple[slice, slice] | None:
    """The rectangle that holds the mask and `margin` pixels around it; None for an empty mask.

    Every pixel nearer than the margin is inside, and so is the fire it is near to: distances in the box are
    the image's own.
    """
    rows = np.flatnonzero(mask.any(axis=1))
    if not rows.size:
        return None
    columns = np.flatnonzero(mask.any(axis=0))
    return (
        slice(max(rows[0] - margin, 0), rows[-1] + margin + 1),
        slice(max(columns[0] - margin, 0), columns[-1] + margin + 1),
    )

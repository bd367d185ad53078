"""Where to look first: the most uncertain pixels along the edge of the fire that is predicted."""

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.regions import distance_to_fire
from fcer.core.surface import boundary

__all__ = ["edge_region", "watch_zone"]


def edge_region(fire: BoolArray, anchor: float) -> BoolArray:
    """The pixels of one image (H, W) at most `anchor` pixels from the boundary of the predicted fire.

    None in an image without a boundary: without fire, or all of it on fire.

    >>> edge_region(np.array([[True, True, False, False, False]]), anchor=1).tolist()
    [[False, True, True, True, False]]
    """
    edge = boundary(fire)
    if not edge.any():
        return np.zeros(fire.shape, bool)
    return np.asarray(distance_to_fire(edge) <= anchor)


def watch_zone(fire: BoolArray, uncertainty: FloatArray, *, anchor: float, quantile: float) -> BoolArray:
    """The pixels near the edge whose uncertainty is above its `quantile` among the pixels near the edge.

    Where more pixels than that share the largest uncertainty, so that none is above, those are watched. Pixels whose
    uncertainty is NaN, since nothing is known of them, are neither near the edge nor watched.

    >>> unc = np.array([[0.1, 0.2, 0.3, 0.4, 0.9]])
    >>> watch_zone(np.array([[True, True, False, False, False]]), unc, anchor=1, quantile=0.5).tolist()
    [[False, False, False, True, False]]
    """
    near = edge_region(fire, anchor) & ~np.isnan(uncertainty)
    if not near.any():
        return near
    least = np.quantile(uncertainty[near], quantile)
    above = near & (uncertainty > least)
    return above if above.any() else near & (uncertainty >= least)

"""The FCER sweep: one method's uncertainty and calibration in every region around fire."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import FloatArray
from fcer.core.near_fire import list_near_fire
from fcer.core.rankers import SortedRanks
from fcer.core.region_totals import RegionPlan, RegionTotals, SweepCurve
from fcer.core.regions import DEFAULT_RADII, check_radii
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import UndefinedMetricWarning

__all__ = ["SweepCurve", "sweep", "warn_where_undefined"]

_IMAGES_AT_ONCE = 16  # small enough that intermediate arrays stay in cache


def sweep(
    fire: ArrayLike,
    prob: ArrayLike,
    unc: ArrayLike,
    *,
    reference_prob: ArrayLike | None = None,
    radii: Sequence[float] = DEFAULT_RADII,
    threshold: float = FIRE_THRESHOLD,
) -> SweepCurve:
    """Uncertainty ranking and calibration of one method in nested regions around fire.

    Pixels of all images with fire are pooled. Errors are those of `reference_prob` (by default the method's
    own), so that several methods can be held to the same ones.

    Parameters
    ----------
    fire, prob, unc:
        What burnt (0/1), the fire probability and the uncertainty: (N, H, W), or (H, W) for one image.
    reference_prob:
        The probability whose errors are to be found, where it is not `prob`.
    radii:
        Ascending, in pixels; infinity for the full image.
    threshold:
        A probability above it predicts fire.

    Examples
    --------
    >>> fire = np.zeros((1, 5, 5)); fire[0, 2, 2:4] = 1
    >>> prob = np.zeros((1, 5, 5)); prob[0, 2, 1:3] = 0.9
    >>> unc = np.zeros((1, 5, 5)); unc[0, 2] = [0, 0.6, 0.2, 0.9, 0]
    >>> curve = sweep(fire, prob, unc, radii=[0, 1, np.inf])
    >>> curve.auroc
    array([1., 1., 1.])
    >>> curve.n_pixels.tolist(), curve.n_errors.tolist()
    ([2, 8, 25], [1, 2, 2])
    """
    burnt, p, u = (_stack(a) for a in (np.asarray(fire, dtype=bool), prob, unc))
    reference = p if reference_prob is None else _stack(reference_prob)
    if not burnt.shape == p.shape == u.shape == reference.shape:
        raise ValueError(f"maps differ in shape: {burnt.shape}, {p.shape}, {u.shape}, {reference.shape}")
    edges = check_radii(radii)
    on_fire = np.flatnonzero(burnt.any(axis=(1, 2)))
    finite = tuple(edges[np.isfinite(edges)]) or (0.0,)
    totals = RegionTotals(RegionPlan(finite, finite[:1], SortedRanks, threshold), own_prob=True)
    for start in range(0, max(on_fire.size, 1), _IMAGES_AT_ONCE):  # once for no image at all, too
        some = on_fire[start : start + _IMAGES_AT_ONCE]
        near = list_near_fire(burnt[some], reference[some], finite, threshold=threshold)
        flat_burnt, flat_p, flat_u = (stack[some].ravel() for stack in (burnt, p, u))
        totals.update(start, near, flat_burnt, flat_p, flat_u, some)
    measured = totals.result().curve
    rows = np.searchsorted(measured.radius_px, edges)
    curve = SweepCurve._make(column[rows] for column in measured)
    warn_where_undefined(curve.radius_px, curve.auroc)
    return curve


def warn_where_undefined(radius_px: FloatArray, auroc: FloatArray, where: str = "") -> None:
    """One warning for all regions that hold no error, or nothing but errors."""
    undefined = radius_px[np.isnan(auroc)]
    if undefined.size:
        regions = ", ".join(f"{radius:g}" for radius in undefined)
        message = f"ranking metrics are undefined and NaN{where} for radius {regions}: errors or right pixels only"
        warnings.warn(message, UndefinedMetricWarning, stacklevel=3)


def _stack(maps: ArrayLike) -> np.ndarray:
    array = np.asarray(maps)
    if array.dtype.kind not in "fb":
        array = array.astype(np.float64)
    return array[None] if array.ndim == 2 else array

"""The FCER sweep: one method's uncertainty and calibration in every region around fire.

A sweep is built from pieces that add up. The pixels near fire are listed once for all methods, ring by ring;
what lies farther out than the largest finite radius enters the full image only, as scores and sums.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import ECE_BINS, log_losses, width_bin
from fcer.core.near_fire import NearFire, list_near_fire
from fcer.core.rank_counts import RingScores, nested_counts, rings_of
from fcer.core.ranking import RankingScores, ranking_scores
from fcer.core.regions import DEFAULT_RADII, PIXEL_METRES, check_radii
from fcer.errors import UndefinedMetricWarning

__all__ = [
    "MethodPixels",
    "SweepCurve",
    "gather",
    "sweep",
    "sweep_curve",
    "warn_where_undefined",
]

_IMAGES_AT_ONCE = 16  # small enough that intermediate arrays stay in cache


class SweepCurve(NamedTuple):
    """One value per region, in the order of the radii."""

    radius_px: FloatArray
    radius_m: FloatArray
    auroc: FloatArray
    auprc: FloatArray
    brier: FloatArray
    nll: FloatArray
    n_pixels: IntArray
    n_errors: IntArray
    prevalence: FloatArray
    fpr95: FloatArray
    aurc: FloatArray
    e_aurc: FloatArray
    augrc: FloatArray
    ece: FloatArray


@dataclass(frozen=True)
class MethodPixels:
    """One method on the images of a `NearFire` list: its values near fire, and what the rest comes to.

    `far_unc` is ascending; `full_calibration` holds pixels, probability and fire, summed by bin.
    """

    prob: FloatArray
    unc: FloatArray
    far_unc: FloatArray
    far_error_unc: FloatArray
    full_brier: float
    full_nll: float
    full_calibration: FloatArray


def sweep(
    fire: ArrayLike,
    prob: ArrayLike,
    unc: ArrayLike,
    *,
    reference_prob: ArrayLike | None = None,
    radii: Sequence[float] = DEFAULT_RADII,
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
    on_fire = burnt.any(axis=(1, 2))
    burnt, p, u, reference = burnt[on_fire], p[on_fire], u[on_fire], reference[on_fire]
    near = list_near_fire(burnt, reference, tuple(edges[np.isfinite(edges)]))
    step = _IMAGES_AT_ONCE
    blocks = ((burnt[i : i + step], p[i : i + step], u[i : i + step]) for i in range(0, len(burnt), step))
    curve = sweep_curve(near, gather(near, blocks, u.dtype), edges)
    warn_where_undefined(curve.radius_px, curve.auroc)
    return curve


def gather(
    near: NearFire,
    blocks: Iterable[tuple[BoolArray, FloatArray, FloatArray]],
    unc_dtype: np.dtype[np.floating],
) -> MethodPixels:
    """Collect one method's values from blocks (fire, prob, unc) of consecutive fire images, without padding.

    Uncertainties keep their precision, for ranks; sums run in double precision.
    """
    # widened from half precision, which keeps ranks and sorts faster
    far_unc = np.empty(near.n_pixels - near.position.size, dtype=np.promote_types(unc_dtype, np.float32))
    near_prob, near_unc, far_error_unc = [], [], []
    brier = nll = 0.0
    calibration = np.zeros((3, ECE_BINS))
    start = n_far = 0
    for fire, prob, unc in blocks:
        stop = start + fire.size
        p, u, burnt = prob.ravel(), unc.ravel(), fire.ravel()
        here = near.position[slice(*np.searchsorted(near.position, (start, stop)))] - start
        far_errors = near.far_error[slice(*np.searchsorted(near.far_error, (start, stop)))] - start
        near_prob.append(p[here])
        near_unc.append(u[here])
        far_error_unc.append(u[far_errors])
        is_far = np.ones(fire.size, dtype=bool)
        is_far[here] = False
        far = u[is_far]
        far_unc[n_far : n_far + far.size] = far
        p64 = p.astype(np.float64)
        brier += float(np.sum((p64 - burnt) ** 2))
        nll += float(np.sum(log_losses(burnt, p64)))
        calibration += _calibration_sums(width_bin(p64, ECE_BINS), p64, burnt, ECE_BINS)
        start, n_far = stop, n_far + far.size
    far_unc.sort()  # in place: for thousands of images this is the largest array there is
    return MethodPixels(
        np.concatenate([np.empty(0, np.float32), *near_prob]),
        np.concatenate([np.empty(0, unc_dtype), *near_unc]),
        far_unc,
        np.concatenate([np.empty(0, unc_dtype), *far_error_unc]),
        brier,
        nll,
        calibration,
    )


def sweep_curve(near: NearFire, method: MethodPixels, radii: Sequence[float] | FloatArray) -> SweepCurve:
    """Every metric in the region of each of `radii`: some of `near.radii`, and infinity."""
    n_rings = len(near.radii)
    rings = rings_of(method.unc, near.error, near.ring, n_rings)
    rings.append(RingScores(method.far_unc, np.sort(method.far_error_unc)))
    ranks = [ranking_scores(counts) for counts in nested_counts(rings)]
    n_pixels = np.cumsum([ring.scores.size for ring in rings])
    n_errors = np.cumsum([ring.positives.size for ring in rings])
    p64 = method.prob.astype(np.float64)
    brier = _region_sums(near.ring, (p64 - near.fire) ** 2, n_rings, method.full_brier)
    nll = _region_sums(near.ring, log_losses(near.fire, p64), n_rings, method.full_nll)
    # NaN in an empty region, which is what the mean of no pixels is
    with np.errstate(invalid="ignore"):
        brier, nll, prevalence = brier / n_pixels, nll / n_pixels, n_errors / n_pixels
    columns = {
        **{name: np.array([getattr(r, name) for r in ranks]) for name in RankingScores._fields},
        "brier": brier,
        "nll": nll,
        "n_pixels": n_pixels,
        "n_errors": n_errors,
        "prevalence": prevalence,
        "ece": _region_ece(near, p64, method.full_calibration, n_pixels),
    }
    edges = np.asarray(radii, dtype=np.float64)
    rows = [n_rings if np.isinf(r) else near.radii.index(r) for r in edges]
    return SweepCurve(
        radius_px=edges,
        radius_m=edges * PIXEL_METRES,
        **{name: column[rows] for name, column in columns.items()},
    )


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


def _region_sums(ring: IntArray, values: FloatArray, n_rings: int, full: float) -> FloatArray:
    return np.append(np.cumsum(np.bincount(ring, weights=values, minlength=n_rings)[:n_rings]), full)


def _calibration_sums(bins: IntArray, prob: FloatArray, fire: BoolArray, n_bins: int) -> FloatArray:
    """Pixels, probability and fire, summed by bin."""
    count = np.bincount(bins, minlength=n_bins)
    return np.array(
        [count, np.bincount(bins, weights=prob, minlength=n_bins), np.bincount(bins[fire], minlength=n_bins)]
    )


def _region_ece(near: NearFire, prob: FloatArray, full: FloatArray, n_pixels: IntArray) -> FloatArray:
    n_rings = len(near.radii)
    bins = near.ring.astype(np.intp) * ECE_BINS + width_bin(prob, ECE_BINS)
    rings = _calibration_sums(bins, prob, near.fire, n_rings * ECE_BINS).reshape(3, n_rings, ECE_BINS)
    _, prob_sum, fire_sum = np.concatenate([rings.cumsum(axis=1), full[:, None]], axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(prob_sum - fire_sum).sum(axis=1) / n_pixels)

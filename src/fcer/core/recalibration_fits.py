"""Recalibrations fitted to counted pixels, and the one that whole fires choose by cross-validation."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.fire_counts import FireCounts
from fcer.core.recalibration import KINDS, NONE, Recalibration
from fcer.errors import FcerWarning, InputError

__all__ = ["Calibrator", "RecalibrationChoice", "choose_recalibration", "fit_recalibration"]

_NO_OTHERS: Mapping[str, "Calibrator"] = {}
_MIN_SCALE = 1e-3
_ISOTONIC_BINS = 100
_END_SLOPE = 1e-3
_RIDGE = 1e-3
"""In pixels: keeps a perfectly parted sample from asking for an infinite scale, and is nothing beside thousands."""


@runtime_checkable
class Calibrator(Protocol):
    """A kind of recalibration that somebody else brings."""

    def fit(self, prob: FloatArray, pixels: IntArray, burnt: IntArray) -> Sequence[tuple[float, float]]:
        """Knots (probability before, after), rising from 0 to 1 in both, with straight lines between them.

        Knots are all that is stored: whoever applies them needs no calibrator. Of the pixels that have each of the
        rising probabilities `prob`, so many are burnt.
        """
        ...


class RecalibrationChoice(NamedTuple):
    """What was chosen, and each candidate's NLL on fires that it was not fitted on."""

    recalibration: Recalibration
    nll: dict[str, float]
    above_best: dict[str, float]
    standard_error: dict[str, float]
    """Of `above_best`, over fires."""
    n_fires: int
    held_out: tuple[Recalibration, ...]
    """What was chosen, for each fire as it is fitted without it; of a fire without pixels, the choice itself."""


def fit_recalibration(
    kind: str, counts: FireCounts, weight: float | None = None, others: Mapping[str, Calibrator] = _NO_OTHERS
) -> Recalibration:
    """The recalibration of a kind that fits all counted pixels best; `weight` is what `prior` undoes."""
    if kind == "prior":
        if weight is None:
            raise ValueError("prior needs the weight that fire pixels had in the loss")
        return Recalibration("prior", weight=weight)
    pixels, burnt = counts.pixels.sum(axis=0), counts.burnt.sum(axis=0)
    some = pixels > 0
    if kind == "platt":
        return _platt(logit(counts.prob[some]), pixels[some], burnt[some])
    if kind == "isotonic":
        return _isotonic(counts.prob[some], pixels[some], burnt[some])
    return NONE if kind == "none" else _brought(kind, others[kind], counts.prob[some], pixels[some], burnt[some])


def choose_recalibration(
    counts: FireCounts,
    weight: float | None = None,
    n_folds: int = 10,
    others: Mapping[str, Calibrator] = _NO_OTHERS,
) -> RecalibrationChoice:
    """The simplest kind whose NLL on held-out fires is within one standard error of the best one's.

    Parameters
    ----------
    counts
        Pixels near fire of at least two fires; a fire without pixels there is left out.
    weight
        Of fire pixels in the loss that the model was trained with; None or 1: there is nothing for `prior` to undo.
    n_folds
        Whole fires are dealt to as many parts at most, and each part is judged by what the others fitted.
    others
        Further candidates by name, which count as less simple than ours; one that fails is named and left out.
    """
    some = np.flatnonzero(counts.pixels.any(axis=1))
    n_all, counts = len(counts.pixels), counts.take(some)
    n_fires = len(some)
    if n_fires < 2:
        raise InputError(
            f"probabilities are calibrated by cross-validation over whole fires, and there is {n_fires or 'no'} fire "
            "with burnt pixels; give validation maps of two fires at least"
        )
    ours = [kind for kind in KINDS if kind != "prior" or weight not in (None, 1)]
    fold = np.random.default_rng(0).permutation(n_fires) % min(n_folds, n_fires)
    fits = {kind: _fits(kind, counts, fold, weight, others) for kind in ours}
    for name in others:
        try:
            fits[name] = _fits(name, counts, fold, weight, others)
        except InputError as why:
            warnings.warn(f"{why}; it is left out", FcerWarning, stacklevel=2)
    losses = {kind: _held_out_nll(counts, fold, fitted) for kind, fitted in fits.items()}
    pixels = counts.pixels.sum(axis=1)
    nll = {kind: float(loss.sum() / pixels.sum()) for kind, loss in losses.items()}
    best = min(nll, key=nll.__getitem__)
    above = {kind: nll[kind] - nll[best] for kind in nll}
    error = {kind: _ratio_error(losses[kind] - losses[best], pixels) for kind in nll}
    chosen = next(kind for kind in nll if above[kind] <= error[kind])
    *apart, whole = fits[chosen]
    held_out = [whole] * n_all
    for fire, part in zip(some.tolist(), fold.tolist(), strict=True):
        held_out[fire] = apart[part]
    return RecalibrationChoice(whole, nll, above, error, n_fires, tuple(held_out))


def _fits(
    kind: str, counts: FireCounts, fold: IntArray, weight: float | None, others: Mapping[str, Calibrator]
) -> list[Recalibration]:
    """One fit without each part of the fires, and last the one to all."""
    parts = [fold != part for part in range(int(fold.max()) + 1)]
    return [fit_recalibration(kind, counts.take(fires), weight, others) for fires in (*parts, np.full(fold.size, True))]


def _held_out_nll(counts: FireCounts, fold: IntArray, fitted: Sequence[Recalibration]) -> FloatArray:
    """Of each fire, under the fit that has not seen it."""
    loss = np.empty(fold.size)
    for part in range(int(fold.max()) + 1):
        loss[fold == part] = counts.take(fold == part).nll(fitted[part])
    return loss


def _ratio_error(total: FloatArray, pixels: IntArray) -> float:
    """Standard error over fires of a mean over their pixels."""
    rest = total - total.sum() / pixels.sum() * pixels
    n = len(pixels)
    return float(np.sqrt(n / (n - 1) * np.sum(rest**2)) / pixels.sum())


def _platt(x: FloatArray, pixels: IntArray, burnt: IntArray) -> Recalibration:
    scale, shift = _newton(np.stack([x, np.ones_like(x)]), pixels, burnt, np.array([1.0, 0.0]))
    if scale < _MIN_SCALE:  # probabilities that rank backwards: NLL is convex, so the best scale allowed is the least
        scale = _MIN_SCALE
        shift = _newton(np.ones((1, x.size)), pixels, burnt, np.zeros(1), offset=scale * x)[0]
    return Recalibration("platt", scale=float(scale), shift=float(shift))


def _newton(
    features: FloatArray, pixels: IntArray, burnt: IntArray, start: FloatArray, offset: FloatArray | float = 0.0
) -> FloatArray:
    """Weights of the features in a logit that minimise NLL; steps are halved until they lower it."""

    def loss(weights: FloatArray) -> float:
        z = weights @ features + offset
        fit = np.logaddexp(0, z) @ pixels - z @ burnt
        return float(fit + _RIDGE / 2 * np.sum((weights - start) ** 2))

    weights = start
    for _ in range(100):
        p = expit(weights @ features + offset)
        gradient = features @ (pixels * p - burnt) + _RIDGE * (weights - start)
        curvature = (features * (pixels * p * (1 - p))) @ features.T + _RIDGE * np.eye(len(start))
        step = np.linalg.solve(curvature, gradient)
        now = loss(weights)
        while loss(weights - step) > now and np.abs(step).max() > 1e-12:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() <= 1e-10:
            break
    return weights


def _isotonic(prob: FloatArray, pixels: IntArray, burnt: IntArray) -> Recalibration:
    """Straight lines between the middles of the steps of isotonic regression, so that no two ranks become one.

    Levels are first put together to bins of a hundredth of the pixels: the outermost steps would else be the luck of a
    handful, such as the three highest that all burnt.
    """
    share = (pixels.cumsum() - pixels / 2) / pixels.sum()
    bins = np.flatnonzero(np.diff((share * _ISOTONIC_BINS).astype(np.intp), prepend=-1))
    mass = np.add.reduceat(pixels, bins)
    found = isotonic_regression(np.add.reduceat(burnt, bins) / mass, weights=mass)
    starts = bins[found.blocks[:-1]]
    total = np.add.reduceat(pixels, starts)
    middle = np.add.reduceat(pixels * prob, starts) / total
    least = 1 / (total.sum() + 2)  # a rate that was never seen is not a rate that cannot be
    rate = np.clip(found.x[found.blocks[:-1]], least, 1 - least)
    # beyond the outer steps nothing is known but the order, which a slope too small to matter keeps
    first, last = (0.0, 0.0), (1.0, float(rate[-1] + _END_SLOPE * (1 - rate[-1])))
    inner = zip(middle.tolist(), rate.tolist(), strict=True)
    return Recalibration("isotonic", knots=(first, *inner, last))


def _brought(name: str, calibrator: Calibrator, *counted: Any) -> Recalibration:
    try:
        return Recalibration(name, knots=tuple((float(x), float(y)) for x, y in calibrator.fit(*counted)))
    except Exception as error:  # whatever somebody else's code raises
        raise InputError(f"calibrators: {name} cannot be fitted ({error})") from error

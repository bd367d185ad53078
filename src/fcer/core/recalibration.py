"""Probabilities made to mean what they say near the fire, by maps of one number that never turn the order around.

`prior` undoes the weight that fire pixels had in the loss; `platt` scales and shifts the logit; `isotonic` follows the
fire rate as it rises with probability; `none` leaves probabilities alone; others may bring a `Calibrator` of their own.
Which one is settled by cross-validation over whole fires.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import CLIP
from fcer.errors import InputError

__all__ = [
    "KINDS",
    "NONE",
    "Calibrator",
    "FireCounts",
    "Recalibration",
    "RecalibrationChoice",
    "choose_recalibration",
    "fit_recalibration",
]

KINDS = ("none", "prior", "platt", "isotonic")
"""Ours, the simpler first."""

_NO_OTHERS: Mapping[str, "Calibrator"] = {}
_EDGE = float(logit(1 - CLIP))
_LEVELS = 4096
_MIN_SCALE = 1e-3
_ISOTONIC_BINS = 100
_END_SLOPE = 1e-3
_RIDGE = 1e-3
"""In pixels: keeps a perfectly parted sample from asking for an infinite scale, and is nothing beside thousands."""


@dataclass(frozen=True)
class Recalibration:
    """A rising map from a model's probability to a calibrated one.

    `prior` and `platt` keep every rank as far as double precision can tell probabilities apart; `isotonic`, which runs
    straight between the middles of its steps rather than along them, ties nearly none.

    >>> Recalibration("prior", weight=4.0).apply([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.2, 1.0]
    """

    kind: str
    """One of `KINDS`, or the name of the calibrator that fitted it."""
    weight: float = 1.0
    """`prior`: what fire pixels weighed in the loss."""
    scale: float = 1.0
    shift: float = 0.0
    """`platt`: of the logit."""
    knots: tuple[tuple[float, float], ...] = ()
    """`isotonic` and calibrators that others bring: probability before and after, both rising."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise ValueError(f"a recalibration is {', '.join(KINDS)} or a calibrator's name, not {self.kind!r}")
        numbers = (self.weight, self.scale, self.shift)
        if not np.isfinite(numbers).all() or self.weight <= 0 or self.scale <= 0:
            raise ValueError(f"weight and scale are above 0 and finite, not weight, scale, shift = {numbers}")
        knots = np.array(self.knots, dtype=np.float64).reshape(-1, 2)
        inside = np.isfinite(knots).all() and (knots >= 0).all() and (knots <= 1).all()
        if self._has_knots != bool(len(knots)) or not inside or (np.diff(knots, axis=0) < 0).any():
            raise ValueError("knots, which none, prior and platt do without, rise from 0 to 1 in both coordinates")

    @property
    def _has_knots(self) -> bool:
        return self.kind not in ("none", "prior", "platt")

    def apply(self, prob: ArrayLike) -> FloatArray:
        """Calibrated probabilities in double precision; NaN stays NaN."""
        p = np.asarray(prob, dtype=np.float64)
        if self.kind == "prior":
            return np.asarray(p / (p + self.weight * (1 - p)))
        if self.kind == "platt":
            with np.errstate(divide="ignore"):  # certainty stays certainty
                return np.asarray(expit(self.scale * logit(p) + self.shift))
        return np.interp(p, *np.array(self.knots).T) if self._has_knots else p.copy()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: only what the kind needs."""
        own: dict[str, dict[str, Any]] = {
            "none": {},
            "prior": {"weight": self.weight},
            "platt": {"scale": self.scale, "shift": self.shift},
        }
        return {"kind": self.kind, **own.get(self.kind, {"knots": [list(knot) for knot in self.knots]})}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Recalibration":
        """What `to_dict` gave; a ValueError says what is wrong with anything else."""
        values = dict(stored)
        kind = values.pop("kind", None)
        expected = {"none": set(), "prior": {"weight"}, "platt": {"scale", "shift"}}
        if not isinstance(kind, str) or values.keys() != expected.get(kind, {"knots"}):
            raise ValueError(f"a recalibration {kind!r} of {sorted(values)} is none")
        try:
            if kind not in expected:
                return cls(kind, knots=tuple((_plain(x), _plain(y)) for x, y in values["knots"]))
            numbers: dict[str, Any] = {name: _plain(value) for name, value in values.items()}
            return cls(kind, **numbers)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a recalibration {kind!r} cannot be read: {error}") from None


NONE = Recalibration("none")


@dataclass
class FireCounts:
    """Pixels near fire, counted by fire and by level of the logit: all that fitting needs, however many there are.

    Levels are fine enough (0.008 of logit) that a level's middle stands for its pixels; what is fitted is applied to
    the probabilities themselves.
    """

    pixels: IntArray
    burnt: IntArray

    @classmethod
    def empty(cls, n_fires: int) -> "FireCounts":
        """Nothing counted yet."""
        return cls(*np.zeros((2, n_fires, _LEVELS), dtype=np.int64))

    @classmethod
    def join(cls, parts: Sequence["FireCounts"]) -> "FireCounts":
        """The fires of all parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("pixels", "burnt")))

    @property
    def prob(self) -> FloatArray:
        """The probability that each level stands for."""
        return np.asarray(expit((np.arange(_LEVELS) + 0.5) / _LEVELS * 2 * _EDGE - _EDGE))

    def add(self, fire: int, prob: ArrayLike, burnt: BoolArray) -> None:
        """Count pixels of a fire."""
        p = np.clip(np.asarray(prob, dtype=np.float64), CLIP, 1 - CLIP)
        level = np.minimum(((logit(p) + _EDGE) / (2 * _EDGE) * _LEVELS).astype(np.intp), _LEVELS - 1)
        self.pixels[fire] += np.bincount(level, minlength=_LEVELS)
        self.burnt[fire] += np.bincount(level[burnt], minlength=_LEVELS)

    def take(self, fires: IntArray | BoolArray) -> "FireCounts":
        """Some of the fires."""
        return FireCounts(self.pixels[fires], self.burnt[fires])

    def nll(self, recalibration: Recalibration) -> FloatArray:
        """Negative log-likelihood of each fire's pixels, summed."""
        p = np.clip(recalibration.apply(self.prob), CLIP, 1 - CLIP)
        return np.asarray(-(self.burnt @ np.log(p) + (self.pixels - self.burnt) @ np.log1p(-p)))


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
        Further candidates by name, which count as less simple than ours.
    """
    counts = counts.take(np.flatnonzero(counts.pixels.any(axis=1)))
    n_fires = len(counts.pixels)
    if n_fires < 2:
        raise InputError(
            f"probabilities are calibrated by cross-validation over whole fires, and there is {n_fires or 'no'} fire "
            "with burnt pixels; give validation maps of two fires at least"
        )
    kinds = (*(kind for kind in KINDS if kind != "prior" or weight not in (None, 1)), *others)
    fold = np.random.default_rng(0).permutation(n_fires) % min(n_folds, n_fires)
    losses = {kind: np.empty(n_fires) for kind in kinds}
    for part in range(fold.max() + 1):
        held_out = np.isin(fold, part)
        for kind in kinds:
            fitted = fit_recalibration(kind, counts.take(~held_out), weight, others)
            losses[kind][held_out] = counts.take(held_out).nll(fitted)
    pixels = counts.pixels.sum(axis=1)
    nll = {kind: float(loss.sum() / pixels.sum()) for kind, loss in losses.items()}
    best = min(kinds, key=nll.__getitem__)
    above = {kind: nll[kind] - nll[best] for kind in kinds}
    error = {kind: _ratio_error(losses[kind] - losses[best], pixels) for kind in kinds}
    chosen = next(kind for kind in kinds if above[kind] <= error[kind])
    return RecalibrationChoice(fit_recalibration(chosen, counts, weight, others), nll, above, error, n_fires)


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
        raise InputError(f"calibrators: {name} cannot be fitted ({error}); repair or uninstall it") from error


def _plain(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)

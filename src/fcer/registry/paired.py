"""Two students on the same validation fires: in which score is one worse, fire by fire?"""

import warnings
from collections.abc import Mapping
from typing import NamedTuple

from fcer.core.statistics import WilcoxonResult, holm_correction, wilcoxon_test
from fcer.errors import UndefinedMetricWarning

__all__ = ["worse_by_fire"]

ByFire = Mapping[str, Mapping[str, float]]

_LEVEL = 0.05
_LEAST = 6
"""Fires that differ, below which the test cannot reach the level for three scores at once."""


class _Score(NamedTuple):
    name: str
    sign: int
    """1 where higher is better, else -1."""
    words: str


_SCORES = (
    _Score("auroc", 1, "AUROC is lower"),
    _Score("auroc_within", 1, "AUROC within the predicted class is lower"),
    _Score("nll", -1, "negative log-likelihood is higher"),
)


def worse_by_fire(ours: ByFire, theirs: ByFire) -> str | None:
    """In words, the score in which `ours` is worse on the fires that both have; None where none is shown to be.

    One-sided signed-rank tests of the paired differences, by fire, with Holm's correction for the scores tested.

    >>> theirs = {f"fire_{k}": {"auroc": 0.8 + k / 100} for k in range(8)}
    >>> ours = {fire: {"auroc": scores["auroc"] - 0.015} for fire, scores in theirs.items()}
    >>> worse_by_fire(ours, theirs)
    'its AUROC is lower (median difference -0.0150 over 8 fires, p 0.0039)'
    >>> worse_by_fire(theirs, ours) is None
    True
    """
    tested = [(score, result) for score in _SCORES if (result := _test(score, ours, theirs)).n_nonzero >= _LEAST]
    corrected = holm_correction([result.p for _, result in tested])
    for (score, result), p in zip(tested, corrected, strict=True):
        if p < _LEVEL:
            delta = -score.sign * result.median_delta
            return f"its {score.words} (median difference {delta:+.4f} over {result.n} fires, p {p:.2g})"
    return None


def _test(score: _Score, ours: ByFire, theirs: ByFire) -> WilcoxonResult:
    """Whether `theirs` is better, on the fires for which both have the score."""
    fires = [
        fire for fire in sorted(ours.keys() & theirs.keys()) if score.name in ours[fire] and score.name in theirs[fire]
    ]
    their, our = ([score.sign * one[fire][score.name] for fire in fires] for one in (theirs, ours))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # no fire in common is no news
        return wilcoxon_test(their, our)

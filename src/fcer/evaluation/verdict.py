"""What the paired tests allow to say, in sentences.

Tests are by fire and pooled over years, by image only where fires are unknown, two-sided, with Holm's correction over
all pairs of methods. A mean that is higher without a test that says so is not called better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fcer.core.statistics import holm_correction
from fcer.evaluation.controls import UNRANKED

if TYPE_CHECKING:
    from fcer.evaluation.results import Results

__all__ = ["Standing", "standing", "verdict"]

_METRICS = {"auroc": "AUROC", "auroc_within": "AUROC within the predicted class"}
_LEVEL = 0.05
_STUDENT, _ENTROPY = "student", "entropy"


def verdict(results: Results) -> list[str]:
    """Which method finds errors best at the anchor, if any does; what controls and chance say to it."""
    sentences = []
    for metric, label in _METRICS.items():
        compared = _Compared(results, metric)
        if compared.methods:
            sentences += [f"{label}: {sentence}" for sentence in _sentences(compared)]
            chance = _below_chance(results, metric, compared.methods)
            sentences += [f"{label}: {chance}"] if chance else []
    return sentences


@dataclass(frozen=True)
class Standing:
    """Who leads by one metric at the anchor."""

    methods: tuple[str, ...]
    """Those that are no controls, the highest mean first."""
    leading: tuple[str, ...]
    """Those of them that no other is clearly above."""
    is_clear: bool
    """Whether one leads alone and is clearly above every other."""
    controls: tuple[str, ...]
    equal_controls: tuple[str, ...]
    """Controls that none of the leading is clearly above."""
    scores: Mapping[str, float]
    unit: str
    """What the tests compare: `fire`, or `image` where fires are unknown."""
    n: int
    """How many of them."""


def standing(results: Results, metric: str) -> Standing | None:
    """Who leads; None where the metric is defined for no method."""
    compared = _Compared(results, metric)
    if not compared.methods:
        return None
    ordered, leading = compared.ordered()
    return Standing(
        tuple(ordered),
        tuple(leading),
        len(leading) == 1 and all(compared.above(leading[0], other) for other in ordered[1:]),
        tuple(compared.controls),
        tuple(compared.equal_controls(leading)),
        {str(name): float(score) for name, score in compared.scores.items()},
        compared.unit,
        compared.n,
    )


class _Compared:
    """Pairs of one metric by their paired tests."""

    def __init__(self, results: Results, metric: str) -> None:
        self.scores = results.over_years("anchor").set_index("method")[metric].dropna()
        self.controls = [name for name in results.settings.controls if name in self.scores]
        own = results.settings.own_methods
        self.methods = [name for name in own if name in self.scores and name not in UNRANKED]
        tests = results.tests[(results.tests["scope"] == "pooled") & (results.tests["metric"] == metric)]
        self.unit = "fire" if (tests["unit"] == "fire").any() else "image"
        tests = tests[tests["unit"] == self.unit]
        self.n = int(tests["n"].max()) if len(tests) else 0
        self.tested = f"by {self.unit}, n {self.n}"
        self._signs: dict[tuple[str, str], int] = {}
        for _, family in tests.groupby(tests["b"].isin(self.controls)):
            clear = holm_correction(family["p_two_sided"]) < _LEVEL
            for row, is_clear in zip(family.to_dict("records"), clear, strict=True):
                sign = int(np.sign(row["rank_biserial"])) if is_clear else 0
                self._signs |= {(row["a"], row["b"]): sign, (row["b"], row["a"]): -sign}

    def above(self, a: str, b: str) -> bool:
        """Whether `a` is clearly higher."""
        return self._signs.get((a, b), 0) > 0

    def ordered(self) -> tuple[list[str], list[str]]:
        """The methods by their means, and those of them that no other is clearly above."""
        ordered = sorted(self.methods, key=lambda name: -self.scores[name])
        return ordered, [name for name in ordered if not any(self.above(other, name) for other in ordered)]

    def equal_controls(self, leading: Sequence[str]) -> list[str]:
        """Controls that none of the leading is clearly above."""
        return [name for name in self.controls if not any(self.above(method, name) for method in leading)]

    def named(self, names: Sequence[str]) -> str:
        """Names with their means."""
        return ", ".join(f"{name} ({self.scores[name]:.3f})" for name in names)


def _sentences(compared: _Compared) -> list[str]:
    ordered, leading = compared.ordered()
    said = [_order(compared, ordered, leading)]
    if {_STUDENT, _ENTROPY} <= set(compared.methods):
        how = "not separable from"
        for better, worse, words in ((_STUDENT, _ENTROPY, "better than"), (_ENTROPY, _STUDENT, "worse than")):
            how = words if compared.above(better, worse) else how
        said.append(f"{_STUDENT} is {how} its own backbone's {compared.named([_ENTROPY])} {compared.tested}")
    equal = compared.equal_controls(leading)
    if equal:
        # with few fires nothing is clearly below anything: a control whose mean is lower has not done as well for it
        as_well = any(compared.scores[name] >= compared.scores[leading[0]] for name in equal)
        words = "a control does as well" if as_well else "a control cannot be told from it"
        said.append(f"{words}: {compared.named(equal)} is not clearly below {compared.named(leading[:1])}")
    return said


def _order(compared: _Compared, ordered: Sequence[str], leading: Sequence[str]) -> str:
    """Who is highest, or why that cannot be said; `leading` are those that no other is clearly above."""
    others = [name for name in ordered if name not in leading]
    if len(ordered) == 1:
        return f"{compared.named(ordered)} stands alone: there is no other method to compare it with"
    if len(leading) == 1 and all(compared.above(leading[0], other) for other in others):
        return f"{compared.named(leading)} is highest, above {compared.named(others)} {compared.tested}"
    behind = f"; {compared.named(others)} below one of them" if others else ""
    return f"no method is best: {compared.named(leading)} not separable {compared.tested}{behind}"


def _below_chance(results: Results, metric: str, methods: Sequence[str]) -> str:
    """Where a mean over years is below what a random ranking has."""
    sweep = results.over_years("sweep")
    found = []
    for method in methods:
        rows = sweep[(sweep["method"] == method) & (sweep[metric] < 0.5)]
        if len(rows):
            radii = ", ".join("full" if np.isinf(radius) else f"{radius:g}" for radius in rows["radius_px"])
            found.append(f"{method} at radius {radii} ({rows[metric].min():.3f} at the lowest)")
    return f"below chance: {'; '.join(found)}" if found else ""

"""What the paired tests allow to say, in sentences.

Tests are by fire and pooled over years, by image only where fires are unknown, two-sided, with Holm's correction over
all pairs of methods. A mean that is higher without a test that says so is not called better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fcer.core.statistics import holm_correction

if TYPE_CHECKING:
    from fcer.evaluation.results import Results

__all__ = ["verdict"]

_METRICS = {"auroc": "AUROC", "auroc_within": "AUROC within the predicted class"}
_LEVEL = 0.05
_STUDENT, _ENTROPY = "student", "entropy"


def verdict(results: Results) -> list[str]:
    """Which method finds errors best at the anchor, if any does; what controls and chance say to it."""
    sentences = []
    for metric, label in _METRICS.items():
        scores = results.over_years("anchor").set_index("method")[metric].dropna()
        methods = [
            name for name in results.settings.methods if name in scores and name not in results.settings.controls
        ]
        if methods:
            compared = _Compared(results, metric, scores)
            sentences += [f"{label}: {sentence}" for sentence in _sentences(compared, methods)]
            chance = _below_chance(results, metric, methods)
            sentences += [f"{label}: {chance}"] if chance else []
    return sentences


class _Compared:
    """Pairs of one metric by their paired tests."""

    def __init__(self, results: Results, metric: str, scores: pd.Series) -> None:
        self.scores, self.controls = scores, [name for name in results.settings.controls if name in scores]
        tests = results.tests[(results.tests["scope"] == "pooled") & (results.tests["metric"] == metric)]
        self.unit = "fire" if (tests["unit"] == "fire").any() else "image"
        tests = tests[tests["unit"] == self.unit]
        self.tested = f"by {self.unit}, n {int(tests['n'].max()) if len(tests) else 0}"
        self._signs: dict[tuple[str, str], int] = {}
        for _, family in tests.groupby(tests["b"].isin(self.controls)):
            clear = holm_correction(family["p_two_sided"]) < _LEVEL
            for row, is_clear in zip(family.to_dict("records"), clear, strict=True):
                sign = int(np.sign(row["rank_biserial"])) if is_clear else 0
                self._signs |= {(row["a"], row["b"]): sign, (row["b"], row["a"]): -sign}

    def above(self, a: str, b: str) -> bool:
        """Whether `a` is clearly higher."""
        return self._signs.get((a, b), 0) > 0

    def named(self, names: Sequence[str]) -> str:
        """Names with their means."""
        return ", ".join(f"{name} ({self.scores[name]:.3f})" for name in names)


def _sentences(compared: _Compared, methods: Sequence[str]) -> list[str]:
    ordered = sorted(methods, key=lambda name: -compared.scores[name])
    leading = [name for name in ordered if not any(compared.above(other, name) for other in ordered)]
    said = [_order(compared, ordered, leading)]
    if {_STUDENT, _ENTROPY} <= set(methods):
        how = "not separable from"
        for better, worse, words in ((_STUDENT, _ENTROPY, "better than"), (_ENTROPY, _STUDENT, "worse than")):
            how = words if compared.above(better, worse) else how
        said.append(f"{_STUDENT} is {how} its own backbone's {compared.named([_ENTROPY])} {compared.tested}")
    equal = [name for name in compared.controls if not any(compared.above(method, name) for method in leading)]
    if equal:
        said.append(
            f"a control does as well: {compared.named(equal)} is not clearly below {compared.named(leading[:1])}"
        )
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

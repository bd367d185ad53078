"""Methods against each other: paired tests, their sensitivity to the anchor, and confidence intervals."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from fcer.core.arrays import IntArray
from fcer.core.bootstrap import Replicates, bootstrap_median, draw_fires, widened_interval
from fcer.core.statistics import holm_correction, wilcoxon_test
from fcer.errors import UndefinedMetricWarning
from fcer.evaluation.controls import UNRANKED

__all__ = ["RANKING_METRICS", "TEST_COLUMNS", "Estimate", "compare", "confidence", "method_pairs"]

RANKING_METRICS = ("auroc", "auprc", "auroc_within")

TEST_COLUMNS = [
    *("metric", "scope", "unit", "a", "b", "n", "n_nonzero", "w_plus", "w_minus", "p", "rank_biserial"),
    *("median_delta", "p_two_sided", "p_holm", "ci_low", "ci_high"),
]
_INTERVAL_COLUMNS = ["scope", "metric", "a", "b", "value", "ci_low", "ci_high"]


class Estimate(NamedTuple):
    """What was measured, and the same for draws of fires."""

    value: float
    replicates: Replicates

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference from another of the same fires."""
        return Estimate(self.value - other.value, self.replicates.minus(other.replicates))


def method_pairs(methods: Sequence[str], first: str, controls: Sequence[str] = ()) -> list[tuple[str, str]]:
    """`first` against each other method, then every other pair, in the methods' order; then each against controls.

    >>> method_pairs(["ensemble", "dropout", "student"], first="student")
    [('student', 'ensemble'), ('student', 'dropout'), ('ensemble', 'dropout')]
    >>> method_pairs(["ensemble", "student", "random"], first="student", controls=["random"])
    [('student', 'ensemble'), ('student', 'random'), ('ensemble', 'random')]
    """
    others = [method for method in methods if method != first and method not in controls]
    pairs = [(first, other) for other in others] + list(combinations(others, 2))
    return pairs + [(method, control) for method in (first, *others) for control in controls]


def compare(
    per_image: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    n_draws: int,
    seed: int,
    controls: Sequence[str] = (),
) -> pd.DataFrame:
    """Every test of per-image scores: for each pair, by year and pooled, by image and by fire.

    What one method `a` is tested for in a scope and unit, against all other methods and in all metrics, is one family
    of Holm's correction. Its tests against controls are another: they must not blunt the question which is better.
    Nothing is tested against what ranks nothing.
    """
    scores = per_image.pivot(index=["year", "fire_id", "index"], columns="method", values=list(RANKING_METRICS))
    samples = []
    for scope, part in _scopes(scores):
        for unit, table in _units(part):
            fire = _fires(table)
            draws = draw_fires(fire.max(initial=-1) + 1, n_draws, np.random.default_rng(seed))
            samples.append((scope, unit, table, fire, draws))
    rows = []
    for a, b in (pair for pair in pairs if not set(pair) & set(UNRANKED)):
        for scope, unit, table, fire, draws in samples:
            for metric in RANKING_METRICS:
                ours, theirs = table[metric][a].to_numpy(), table[metric][b].to_numpy()
                delta = ours - theirs
                n_fires = np.unique(fire[~np.isnan(delta)]).size
                low, high = widened_interval(bootstrap_median(delta, fire, draws), n_fires - 1)
                names = {"metric": metric, "scope": scope, "unit": unit, "a": a, "b": b}
                with warnings.catch_warnings():
                    if metric == "auroc_within":  # which has been said of the year itself
                        warnings.simplefilter("ignore", UndefinedMetricWarning)
                    result = wilcoxon_test(ours, theirs)._asdict()
                rows.append({**names, **result, "ci_low": low, "ci_high": high})
    tests = pd.DataFrame(rows, columns=TEST_COLUMNS)
    for _, family in tests.groupby(["scope", "unit", "a", tests["b"].isin(controls)]):
        tests.loc[family.index, "p_holm"] = holm_correction(family["p"])
    return tests


def confidence(estimates: Mapping[int, Mapping[tuple[str, str], Mapping[str, Estimate]]]) -> pd.DataFrame:
    """95% confidence of each metric, and of each pair's difference, by year and for the mean over years.

    Estimates go by year, then by method and the one that it is compared with (or ""), then by metric. Years in which a
    metric is undefined do not count for its mean.
    """
    rows = []
    scopes = [(str(year), [year]) for year in estimates] + ([("mean", list(estimates))] if estimates else [])
    for scope, years in scopes:
        for (a, b), metrics in estimates[years[0]].items():
            for metric in metrics:
                found = [estimates[year][a, b][metric] for year in years]
                defined = [one for one in found if not np.isnan(one.value)] or found[:1]
                value = float(np.mean([one.value for one in defined]))
                interval = Replicates.mean([one.replicates for one in defined]).interval(value)
                rows.append((scope, metric, a, b, value, *interval))
    return pd.DataFrame(rows, columns=_INTERVAL_COLUMNS)


def _scopes(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for year, part in scores.groupby(level="year"):
        yield str(year), part
    yield "pooled", scores


def _units(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Images; and fires, as the mean of their images, where every image says whose it is."""
    yield "image", scores
    if (scores.index.get_level_values("fire_id") != "").all():
        yield "fire", scores.groupby(level=["year", "fire_id"]).mean()


def _fires(scores: pd.DataFrame) -> IntArray:
    """A number for each row's fire; an image of no known fire is one of its own."""
    index = scores.index.to_frame(index=False)
    unknown = index["fire_id"] == ""
    own = index["index"].astype(str) if "index" in index else ""
    name = index["fire_id"].where(~unknown, own)
    return index.assign(name=name, unknown=unknown).groupby(["year", "unknown", "name"]).ngroup().to_numpy()

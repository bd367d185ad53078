"""Methods against each other: paired tests, their sensitivity to the anchor, and confidence intervals."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.bootstrap import bootstrap_median, draw_fires, percentile_interval
from fcer.core.statistics import holm_correction, wilcoxon_test

__all__ = ["RANKING_METRICS", "TEST_COLUMNS", "compare", "confidence", "method_pairs"]

RANKING_METRICS = ("auroc", "auprc")

TEST_COLUMNS = [
    *("metric", "scope", "unit", "a", "b", "n", "n_nonzero", "w_plus", "w_minus", "p", "rank_biserial"),
    *("median_delta", "p_two_sided", "p_holm", "ci_low", "ci_high"),
]
_INTERVAL_COLUMNS = ["scope", "metric", "a", "b", "value", "ci_low", "ci_high"]


def method_pairs(methods: Sequence[str], first: str) -> list[tuple[str, str]]:
    """`first` against each other method, then every other pair, in the methods' order.

    >>> method_pairs(["ensemble", "dropout", "student"], first="student")
    [('student', 'ensemble'), ('student', 'dropout'), ('ensemble', 'dropout')]
    """
    others = [method for method in methods if method != first]
    return [(first, other) for other in others] + list(combinations(others, 2))


def compare(per_image: pd.DataFrame, pairs: Sequence[tuple[str, str]], n_draws: int, seed: int) -> pd.DataFrame:
    """Every test of per-image scores: for each pair, by year and pooled, by image and by fire.

    What one method `a` is tested for in a scope and unit, against all others and in all metrics, is one family of
    Holm's correction: controls among the methods must not blunt the question whether the student is better.
    """
    scores = per_image.pivot(index=["year", "fire_id", "index"], columns="method", values=list(RANKING_METRICS))
    samples = [(scope, unit, table) for scope, part in _scopes(scores) for unit, table in _units(part)]
    rows = []
    for a, b in pairs:
        for scope, unit, table in samples:
            fire = _fires(table)
            draws = draw_fires(fire.max(initial=-1) + 1, n_draws, np.random.default_rng(seed))
            for metric in RANKING_METRICS:
                ours, theirs = table[metric][a].to_numpy(), table[metric][b].to_numpy()
                low, high = percentile_interval(bootstrap_median(ours - theirs, fire, draws))
                names = {"metric": metric, "scope": scope, "unit": unit, "a": a, "b": b}
                result = wilcoxon_test(ours, theirs)._asdict()
                rows.append({**names, **result, "ci_low": low, "ci_high": high})
    tests = pd.DataFrame(rows, columns=TEST_COLUMNS)
    for _, family in tests.groupby(["scope", "unit", "a"]):
        tests.loc[family.index, "p_holm"] = holm_correction(family["p"])
    return tests


def confidence(
    values: Mapping[int, Mapping[str, Mapping[Hashable, float]]],
    replicates: Mapping[int, Mapping[str, Mapping[str, FloatArray]]],
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """95% confidence of each metric and of each pair's difference, by year and for the mean over years.

    Both arguments go by year, method and metric: what was measured, and the same for each draw of fires.
    """
    rows = []
    scopes = [(str(year), [year]) for year in values] + ([("mean", list(values))] if values else [])
    for scope, years in scopes:
        first = replicates[years[0]]
        subjects = [(method, "") for method in first] + list(pairs)
        for a, b in subjects:
            for metric in first[a]:
                value = np.mean([values[y][a][metric] - (values[y][b][metric] if b else 0) for y in years])
                draws = [replicates[y][a][metric] - (replicates[y][b][metric] if b else 0) for y in years]
                rows.append((scope, metric, a, b, value, *percentile_interval(np.mean(draws, axis=0))))
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

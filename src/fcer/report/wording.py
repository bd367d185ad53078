"""What the numbers say, in sentences."""

import math
from collections.abc import Mapping
from typing import Any

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.results import Results

__all__ = ["anchor_words", "headline", "number", "p_value", "sentences_of_tests"]

_LEVEL = 0.05
_MINUS = "−"


def anchor_words(results: Results) -> str:
    """The region at the anchor: `within 4 px (1.50 km) of fire`."""
    pixels = results.settings.anchor_px
    return f"within {pixels:.3g} px ({pixels * PIXEL_METRES / 1000:.2f} km) of fire"


def headline(results: Results) -> str:
    """The result in one sentence: each method's ranking at the anchor against a random one."""
    settings = results.settings
    means = {row["method"]: row for row in results.over_years("anchor").to_dict("records")}
    years = f"in {settings.years[0]}" if len(settings.years) == 1 else f"as mean of {len(settings.years)} years"
    lead, *others = sorted(settings.methods, key=lambda method: -_ranked(means[method]["auroc"]))
    parts = []
    for metric, chance in (("auroc", 0.5), ("auprc", means[lead]["prevalence"])):
        rest = [f"{method} {number(means[method][metric])}" for method in others]
        against = "; ".join([*rest, f"chance {number(chance)}"])
        parts.append(f"{metric.upper()} {number(means[lead][metric])} ({against})")
    where = anchor_words(results)
    errors = f"the errors of {settings.reference}" if lead != settings.reference else "its own errors"
    best = "ranks" if not others else "ranks best: it finds"
    return (
        f"{where[0].upper()}{where[1:]}, the uncertainty of {lead} {best} {errors} with {' and '.join(parts)}, {years}."
    )


def sentences_of_tests(results: Results) -> list[str]:
    """One sentence for each pooled test of the first two methods; a single method has none."""
    pooled = results.tests[results.tests["scope"] == "pooled"].to_dict("records")
    return [_test_sentence(row) for row in pooled if (row["a"], row["b"]) == (pooled[0]["a"], pooled[0]["b"])]


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """A number in words' company: a real minus, and `undefined` for NaN.

    >>> number(-0.0213, signed=True), number(math.nan)
    ('−0.021', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", _MINUS)


def _test_sentence(row: Mapping[Any, Any]) -> str:
    what = f"{row['metric'].upper()} by {row['unit']}"
    if row["n"] == 0 or math.isnan(row["p"]):
        return f"{what}: {row['a']} and {row['b']} cannot be compared, since no {row['unit']} has scores of both."
    delta = row["median_delta"]
    size = f"{number(abs(delta))} {'above' if delta >= 0 else 'below'}" if delta else "level with"
    interval = ""
    if not math.isnan(row["ci_low"]):
        low, high = (number(row[end], signed=True) for end in ("ci_low", "ci_high"))
        interval = f" (95% interval of the difference {low} to {high}, drawing fires)"
    effect = "undefined" if math.isnan(row["rank_biserial"]) else number(row["rank_biserial"], 2, signed=True)
    verdict = "is shown" if row["p_holm"] < _LEVEL else "is not shown"
    p, corrected = p_value(row["p"]), p_value(row["p_holm"])
    return (
        f"{what}: in the median over {row['n']:.0f} {row['unit']}s {row['a']} is {size} {row['b']}{interval}; "
        f"that {row['a']} ranks better {verdict} at the 5% level "
        f"(rank-biserial r {effect}, one-sided p {p}, {corrected} after Holm's correction)."
    )


def p_value(value: float) -> str:
    """A p-value, small ones as such."""
    if math.isnan(value):
        return "undefined"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _ranked(value: float) -> float:
    return -math.inf if math.isnan(value) else value

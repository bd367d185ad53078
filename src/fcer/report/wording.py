"""What the numbers say, in sentences."""

import math
from collections.abc import Mapping
from typing import Any

from fcer.evaluation.anchor_words import within_anchor
from fcer.evaluation.results import Results
from fcer.evaluation.verdict import verdict
from fcer.evaluation.zone_verdict import broken_promises, zones_verdict
from fcer.report.style import METRIC_NAMES

__all__ = ["SYNTHETIC", "headline", "number", "p_value", "sentences_of_tests"]

SYNTHETIC = "These fires are synthetic: they never burnt, and the numbers say nothing of real ones."

_LEVEL = 0.05
_MINUS = "−"


def headline(results: Results) -> list[str]:
    """What the paired tests by fire allow to say, controls and chance included.

    Before it: that fires are synthetic, where they are, and where and when that is said of.
    """
    years = results.settings.years
    when = f"as mean of {len(years)} years" if len(years) > 1 else f"in {years[0]}"
    where = f"{_sentence(within_anchor(results.settings))}, errors of {results.settings.reference}"
    undefined = "no ranking is defined: the pixels are all right, or all wrong"
    said = [f"{_sentence(said)}." for said in verdict(results) or [undefined]]
    broken = [zones_verdict(results.zones)] if results.zones is not None and len(broken_promises(results.zones)) else []
    return [*([SYNTHETIC] if results.settings.synthetic else []), *broken, f"{where}, {when}.", *said]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def sentences_of_tests(results: Results) -> list[str]:
    """One sentence for each pooled test of the first two methods, or of a single one and its first control."""
    ranking = results.tests["metric"].isin(list(METRIC_NAMES))
    pooled = results.tests[ranking & (results.tests["scope"] == "pooled")].to_dict("records")
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
    what = f"{METRIC_NAMES[row['metric']]} by {row['unit']}"
    if row["n"] == 0 or math.isnan(row["p"]):
        return f"{what}: {row['a']} and {row['b']} cannot be compared, since no {row['unit']} has scores of both."
    delta = row["median_delta"]
    size = f"{number(abs(delta))} {'above' if delta >= 0 else 'below'}" if delta else "level with"
    interval = ""
    if not math.isnan(row["ci_low"]):
        low, high = (number(row[end], signed=True) for end in ("ci_low", "ci_high"))
        interval = f" (95% interval of the difference {low} to {high}, drawing fires)"
    effect = "undefined" if math.isnan(row["rank_biserial"]) else number(row["rank_biserial"], 2, signed=True)
    shown = "is shown" if row["p_holm"] < _LEVEL else "is not shown"
    p, corrected = p_value(row["p"]), p_value(row["p_holm"])
    return (
        f"{what}: in the median over {row['n']:.0f} {row['unit']}s {row['a']} is {size} {row['b']}{interval}; "
        f"that {row['a']} ranks better {shown} at the 5% level "
        f"(rank-biserial r {effect}, one-sided p {p}, {corrected} after Holm's correction)."
    )


def p_value(value: float) -> str:
    """A p-value, small ones as such."""
    if math.isnan(value):
        return "undefined"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"

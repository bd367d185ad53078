"""Tests that may be looked at every day of a season, one value a fire: evidence that passes 1/α refutes at level α.

Evidence is a wealth that starts with 1 and that nobody can raise, on average, while the belief is true. So it passes
1/α with a chance of at most α, however often one looks (Ville). Two beliefs are tested:

    mean_test   the mean over fires is at most `null`. A bet of λ pays 1 + λ (value - null); the wealth is the mean over
                some fixed λ, so that none is chosen by looking. Values are bounded below; above they need no bound.
    rank_test   fires are like `of` earlier ones. Then whether a new fire falls below the k-th lowest of those is a draw
                from an urn with k balls for yes and `of` + 1 - k for no, to which each draw adds one of its kind
                (Pólya), whatever the law of the values. Nothing is estimated, so that few earlier fires do not blur it.
                The bet is on a share of yes that is larger, any one; the wealth is the mean over some k.

Days of one fire resemble each other: a fire that was bad yesterday is likely bad today though fires are as promised. So
each fire counts once, by its first day. A change later in the season would then be seen on new fires alone, and against
all those before; therefore a test starts anew on every day, in which each fire that burns then counts once more, and
nothing that was seen before. A second test of ranks starts on each day that has a new fire: new ones count, and those
that were new before it are earlier ones as well, whose number grows with the season. No fire is on both sides, so that
each of these tests is fair by itself. A union bound joins them; those of the s-th such day have a share of α
proportional to 1/s.

What is assumed: fires are independent of each other, and the first day that is seen of a fire after some date is as
promised.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "MOST_STARTS",
    "Evidence",
    "Test",
    "daily_evidence",
    "mean_test",
    "rank_test",
    "share_at_most",
    "urn_evidence",
]

Test = Callable[[FloatArray, FloatArray], FloatArray]
"""From values of earlier fires of the season, and of those since: the logarithm of evidence after each of these."""

MOST_STARTS = 366
"""Days of a season, which is a year at most."""
_SPENT = np.log(np.arange(1, MOST_STARTS + 1)) + np.log(np.sum(1 / np.arange(1, MOST_STARTS + 1)))
_NEVER, _LATE = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95])
"""λ as shares of the largest that cannot lose everything."""
_MARKS = (0.0, 1 / 10, 1 / 4)
"""Shares of earlier fires, to fall below which is a yes: below all of them, below all but a few, and below most."""


@dataclass(frozen=True)
class Evidence:
    """Against a belief, day by day."""

    days: IntArray
    """Those on which something was seen, ascending."""
    log: FloatArray
    """Natural logarithm of the evidence so far; where it passes log(1/α), the belief is refuted at level α."""
    _best: IntArray
    _tests: list[tuple[IntArray, IntArray]]
    """Of each test, the values that count and their days."""

    def counted(self, k: int) -> IntArray:
        """Which values count on the k-th day, one a fire, in the test that has most evidence then."""
        values, when = self._tests[self._best[k]]
        return np.asarray(values[: np.searchsorted(when, self.days[k], side="right")])


def mean_test(null: float, low: float = 0.0) -> Test:
    """Of a mean of at most `null`, by values of at least `low`, which is below `null`.

    >>> mean_test(null=0.5)(np.empty(0), np.zeros(2)).round(2).tolist()  # whatever is at most 0.5 costs
    [-0.49, -0.72]
    """

    def evidence(_: FloatArray, x: FloatArray) -> FloatArray:
        if not low < null or (x < low).any() or not np.isfinite(x).all():
            raise ValueError(f"values of at least {low}, which is below the null {null}, are needed")
        return _mean(np.cumsum(np.log1p(_BETS[:, None] * ((x - null) / (null - low))), axis=1))

    return evidence


def rank_test(of: int) -> Test:
    """Of fires being like `of` others before the season, and like earlier ones in it.

    The whole part of a value is the number of those `of` that the fire is at least as good as; values as a whole have
    the order of the scores.

    >>> rank_test(9)(np.empty(0), np.zeros(5)).round(1).tolist()  # one after the other worse than all nine
    [1.6, 3.0, 4.1, 5.1, 6.0]
    """

    def evidence(earlier: FloatArray, x: FloatArray) -> FloatArray:
        n = of + earlier.size
        rank = np.floor(x) + np.searchsorted(np.sort(earlier), x, side="right")
        marks = sorted({max(1, int(np.ceil(share * n))) for share in _MARKS})
        return _mean(np.stack([urn_evidence(rank < k, k, n) for k in marks]))

    return evidence


def urn_evidence(yes: BoolArray, k: int, n: int) -> FloatArray:
    """Evidence against draws from an urn with k balls for yes and n + 1 - k for no, after each draw.

    The bet is on independent draws with one share of yes, between that of the urn and 1, large ones more likely than
    small ones by their square: what is broken is broken in most fires. The more yes, the more evidence while 2 k is at
    most n + 1; so fires that are better than earlier ones give less than like ones.
    """
    from scipy.special import betainc, betaln  # take a while to import, and few need them

    hits = np.cumsum(yes)
    others, share = np.arange(1, yes.size + 1) - hits, k / (n + 1)
    with np.errstate(divide="ignore"):  # no evidence at all
        beyond = np.log(betainc(others + 1, hits + 3, 1 - share)) - np.log((1 - share**3) / 3)
    bet = betaln(hits + 3, others + 1) + beyond
    urn = betaln(k + hits, n + 1 - k + others) - betaln(k, n + 1 - k)
    return np.asarray(bet - urn)


def daily_evidence(day: ArrayLike, fire: ArrayLike, value: ArrayLike, test: Test, grows: bool = False) -> Evidence:
    """Evidence against what a test believes, on each day of a season.

    Parameters
    ----------
    day, fire, value
        What was seen: the day as a number, the fire it is of, and the value. NaN: nothing.
    grows
        Whether the test can make use of earlier fires.
    """
    x = np.asarray(value, dtype=np.float64)
    who = np.unique(np.asarray(fire), return_inverse=True)[1] if x.size else np.empty(0, dtype=np.int64)
    when = np.asarray(day, dtype=np.int64)
    seen = np.flatnonzero(~np.isnan(x))
    order = seen[np.lexsort((who[seen], when[seen]))]
    when, who, x = when[order], who[order], x[order]
    days, before = np.unique(when), _day_before(when, who)
    log, best = np.full(days.size, -np.inf), np.zeros(days.size, dtype=np.int64)
    tests: list[tuple[IntArray, IntArray]] = []
    # What burns when the record begins had begun before, and is not known by its first day
    first = (before == _NEVER) & (when > when.min(initial=_LATE))
    fresh = np.unique(when[first])
    for start, begins in enumerate(days[:MOST_STARTS]):
        since = (when >= begins) & (before < begins)
        starts = [(x[:0], since, _SPENT[start] + np.log(2.0 if grows else 1.0))]
        if grows and (news := np.searchsorted(fresh, begins)) < fresh.size and fresh[news] == begins:
            starts.append((x[first & ~since], since & first, _SPENT[news] + np.log(2.0)))
        for earlier, counts, spent in starts:
            once = np.flatnonzero(counts)
            so_far = np.searchsorted(when[once], days[start:], side="right")
            found = test(earlier, x[once])[so_far - 1] - spent  # one fire at least counts on the first day
            better = found > log[start:]
            log[start:][better], best[start:][better] = found[better], len(tests)
            tests.append((order[once], when[once]))
    return Evidence(days, np.maximum.accumulate(log), best, tests)


def _mean(logs: FloatArray) -> FloatArray:
    """The mean over bets of wealth, by logarithms."""
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))


def _day_before(when: IntArray, who: IntArray) -> IntArray:
    """The day on which each fire was last seen before."""
    before = np.full(when.size, _NEVER)
    order = np.argsort(who, kind="stable")
    same = who[order][1:] == who[order][:-1]
    before[order[1:][same]] = when[order[:-1][same]]
    return before


def share_at_most(found: int, of: int, doubt: float = 0.025) -> float:
    """The largest share, of all, that `found` of so many does not speak against (Clopper and Pearson, one-sided).

    >>> round(share_at_most(0, 8), 2), share_at_most(8, 8)
    (0.37, 1.0)
    """
    from scipy.stats import beta  # takes a while to import, and few need it

    return 1.0 if found >= of else float(beta.ppf(1 - doubt, found + 1, of - found))

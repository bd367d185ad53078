"""Tests of a mean that may be looked at every day of a season, one value a fire, by betting.

Whoever believes that a mean is at most `null` must find a bet fair that pays 1 + λ (value - null). Starting from 1, the
wealth of such bets, one a fire, passes 1/α with a chance of at most α if the belief is true, however often one looks
(Ville). That holds for any value that is bounded below and whose mean, for a fire about which nothing is known yet, is
at most `null`; values above need no bound. The wealth is the mean over some fixed λ, so that no λ is chosen by looking
and the order of a day's fires does not matter.

Days of one fire resemble each other: a fire that was bad yesterday is likely bad today though the mean over fires is
as promised. So each fire counts once, by its first day. A change later in the season would then be seen on new fires
alone; therefore a test starts anew on every day, in which each fire that burns then counts once more. What was seen
before it does not use, so that each of these tests is fair by itself. A union bound joins them: half of α is for the
test from the season's first day, and the others share the other half.

What is assumed: fires are independent of each other, and the first day that is seen of a fire after some date has the
promised mean.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import FloatArray, IntArray

__all__ = ["MOST_STARTS", "Evidence", "daily_evidence", "log_wealth", "share_at_most"]

MOST_STARTS = 366
"""Days of a season, which is a year at most."""

_BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95])
"""λ as shares of the largest that cannot lose everything."""


class Evidence(NamedTuple):
    """Against a mean of at most `null`, day by day."""

    days: IntArray
    """Those on which something was seen, ascending."""
    log: FloatArray
    """Natural logarithm of the evidence so far; where it passes log(1/α), the belief is refuted at level α."""
    counted: IntArray
    """Fires that count on each day in the test that has most evidence then."""
    mean: FloatArray
    """Of their values."""


def log_wealth(values: ArrayLike, null: float, low: float) -> FloatArray:
    """Logarithm of the wealth after each of some independent values, all of them at least `low`, which is below `null`.

    >>> log_wealth([0.0, 0.0], null=0.5, low=0.0).round(2).tolist()  # whatever is at most 0.5 costs
    [-0.49, -0.72]
    """
    return _joined(np.cumsum(_gains(np.asarray(values, dtype=np.float64), null, low), axis=1))


def daily_evidence(day: ArrayLike, fire: ArrayLike, value: ArrayLike, null: float, low: float = 0.0) -> Evidence:
    """Evidence that the mean over fires is above `null`, on each day of a season.

    Parameters
    ----------
    day, fire, value
        What was seen: the day as a number, the fire it is of, and the value, at least `low`. NaN: nothing.
    null
        The mean over fires is believed to be at most this. For a belief of at least, negate values, null and low.
    low
        No value is smaller.
    """
    x = np.asarray(value, dtype=np.float64)
    who = np.unique(np.asarray(fire), return_inverse=True)[1] if x.size else np.empty(0, dtype=np.int64)
    when = np.asarray(day, dtype=np.int64)
    seen = np.flatnonzero(~np.isnan(x))
    order = seen[np.lexsort((who[seen], when[seen]))]
    when, who, x = when[order], who[order], x[order]
    days, before, gains = np.unique(when), _day_before(when, who), _gains(x, null, low)
    log, mean = np.full(days.size, -np.inf), np.full(days.size, np.nan)
    counted = np.zeros(days.size, dtype=np.int64)
    for start, begins in enumerate(days[:MOST_STARTS]):
        once = np.flatnonzero((when >= begins) & (before < begins))
        so_far = np.searchsorted(when[once], days[start:], side="right")  # one at least, of the first day
        spent = np.log(2.0 if start == 0 else 2.0 * (MOST_STARTS - 1))
        found = _joined(np.cumsum(gains[:, once], axis=1)[:, so_far - 1]) - spent
        better = np.flatnonzero(found > log[start:])
        log[start + better], counted[start + better] = found[better], so_far[better]
        mean[start + better] = (np.cumsum(x[once])[so_far - 1] / so_far)[better]
    return Evidence(days, np.maximum.accumulate(log), counted, mean)


def _gains(x: FloatArray, null: float, low: float) -> FloatArray:
    """What each value adds to the logarithm of the wealth of each bet."""
    if not low < null or (x < low).any() or not np.isfinite(x).all():
        raise ValueError(f"values of at least {low}, which is below the null {null}, are needed")
    return np.asarray(np.log1p(_BETS[:, None] * ((x - null) / (null - low))))


def _joined(logs: FloatArray) -> FloatArray:
    """The mean over bets of wealth, by logarithms."""
    most = logs.max(axis=0, initial=-np.inf)
    return np.asarray(most + np.log(np.mean(np.exp(logs - most), axis=0)))


def _day_before(when: IntArray, who: IntArray) -> IntArray:
    """The day on which each fire was last seen before."""
    before = np.full(when.size, np.iinfo(np.int64).min)
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

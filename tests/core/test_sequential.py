"""Sequential tests: quiet seasons stay quiet though they are looked at daily, and a change is found in days."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.sequential import daily_evidence, mean_test, rank_test, share_at_most, urn_evidence

ALPHA = 0.05
SEASONS = 200
NOTHING = np.empty(0)
MOST = 17
"""Of 200 seasons, false alarms at a rate of 5 % exceed this once in 50 times."""


def season(
    rng: np.random.Generator, mean: float, later: float | None = None, fires: int = 40
) -> tuple[np.ndarray, ...]:
    """Fires that begin any day and burn up to three weeks, good ones and bad ones; from day 30 on another mean."""
    days = np.ceil(rng.pareto(1.2, fires) + 0.2).clip(1, 21).astype(int)
    fire = np.repeat(np.arange(fires), days)
    day = (rng.integers(0, 60, fires)[fire] + np.concatenate([np.arange(n) for n in days])).astype(int)
    level = np.where((day >= 30) & (later is not None), later or 0, mean)
    own = rng.beta(0.5, 0.5, fires)[fire]  # a fire is mostly all good or all bad
    strength = 8.0
    drawn = rng.beta(
        strength * np.clip(2 * own * level, 0.02, 0.98), strength * np.clip(1 - 2 * own * level, 0.02, 0.98)
    )
    return day, fire, drawn


@pytest.fixture(scope="module")
def true_mean() -> float:
    """Of fires' first days, from far more of them than a season has."""
    _, fire, value = season(np.random.default_rng(1), 0.1, fires=50_000)
    return float(value[np.unique(fire, return_index=True)[1]].mean())


def alarms(seasons: int, null: float, **changed: float) -> list[int | None]:
    """The day on which each season's evidence first passes 1/α."""
    found: list[int | None] = []
    for seed in range(seasons):
        evidence = daily_evidence(*season(np.random.default_rng(1000 + seed), 0.1, **changed), mean_test(null))
        passed = np.flatnonzero(evidence.log >= np.log(1 / ALPHA))
        found.append(int(evidence.days[passed[0]]) if passed.size else None)
    return found


def test_quiet_seasons_alarm_at_most_at_the_nominal_rate(true_mean: float):
    false = sum(day is not None for day in alarms(SEASONS, true_mean))
    assert false <= MOST


def test_days_taken_for_independent_would_alarm_too_often(true_mean: float):
    """What counting fires once is for: the same bets on every day of every fire."""
    false = 0
    for seed in range(SEASONS):
        day, _, value = season(np.random.default_rng(1000 + seed), 0.1)
        wealth = mean_test(true_mean)(NOTHING, value[np.argsort(day, kind="stable")])
        false += bool((wealth >= np.log(1 / ALPHA)).any())
    assert false > MOST


def test_a_change_in_the_middle_of_a_season_is_found(true_mean: float):
    found = [day for day in alarms(40, true_mean, later=0.45) if day is not None]
    assert len(found) >= 36
    assert np.median(found) - 30 <= 21 and sum(day < 30 for day in found) <= 4


def ranked_alarm(seed: int, worse: float = 0.0) -> int | None:
    """The day of the alarm in a season of skewed scores, after 12 validation fires; from day 30 on they are worse."""
    rng = np.random.default_rng(seed)
    day, fire, _ = season(rng, 0.1)
    own = rng.normal(size=fire.max() + 1)[fire]  # days of one fire resemble each other
    score = np.exp(0.8 * own + 0.6 * rng.normal(size=fire.size) - worse * (day >= 30))
    others = np.sort(np.exp(0.8 * rng.normal(size=12) + 0.6 * rng.normal(size=12)))
    value = np.searchsorted(others, score, side="right") + score / (1 + score)
    evidence = daily_evidence(day, fire, value, rank_test(12), grows=True)
    passed = np.flatnonzero(evidence.log >= np.log(1 / ALPHA))
    return int(evidence.days[passed[0]]) if passed.size else None


@pytest.mark.slow
def test_quiet_seasons_like_few_validation_fires_alarm_at_most_at_the_nominal_rate():
    assert sum(ranked_alarm(seed) is not None for seed in range(SEASONS)) <= MOST


def test_worse_fires_than_those_before_are_found():
    found = [day for seed in range(20) if (day := ranked_alarm(seed, worse=4.0)) is not None]
    assert len(found) >= 18 and 0 <= np.median(found) - 30 <= 21


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.05, 0.95))
def test_wealth_is_never_negative_and_no_order_matters(values: list[float], null: float):
    wealth, turned = (mean_test(null)(NOTHING, np.array(some)) for some in (values, values[::-1]))
    assert np.isfinite(wealth).all()
    assert turned[-1] == pytest.approx(wealth[-1])


def all_outcomes(draws: int) -> np.ndarray:
    return (np.arange(2**draws)[:, None] >> np.arange(draws)) & 1


@given(st.floats(0.05, 0.9), st.integers(1, 6))
def test_a_fair_coin_keeps_its_wealth_on_average(null: float, tosses: int):
    """All outcomes of some tosses with the null as their mean, each with its chance."""
    outcomes = all_outcomes(tosses)
    chance = np.prod(np.where(outcomes == 1, null, 1 - null), axis=1)
    wealth = [np.exp(mean_test(null)(NOTHING, row.astype(float))[-1]) for row in outcomes]
    assert chance @ wealth == pytest.approx(1.0)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 6))
def test_an_urn_keeps_its_wealth_on_average(k: int, more: int, draws: int):
    """All outcomes of some draws, each with its chance."""
    n, outcomes = k + more - 1, all_outcomes(draws)
    chance = np.ones(len(outcomes))
    for i in range(draws):
        share = (k + outcomes[:, :i].sum(axis=1)) / (n + 1 + i)
        chance *= np.where(outcomes[:, i] == 1, share, 1 - share)
    wealth = [np.exp(urn_evidence(row == 1, k, n)[-1]) for row in outcomes]
    assert chance @ wealth == pytest.approx(1.0)


@given(st.integers(1, 40), st.data())
def test_more_fires_below_the_mark_never_give_less_evidence(n: int, data: st.DataObject):
    k = data.draw(st.integers(1, (n + 1) // 2))
    draws = np.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=30)))
    more = draws | np.array(data.draw(st.lists(st.booleans(), min_size=draws.size, max_size=draws.size)))
    assert (urn_evidence(more, k, n) >= urn_evidence(draws, k, n) - 1e-9).all()


def test_a_fire_counts_once_in_each_test():
    once = daily_evidence([1, 2], ["a", "b"], [1.0, 1.0], mean_test(0.1))
    again = daily_evidence([1, 2, 2], ["a", "b", "a"], [1.0, 1.0, 1.0], mean_test(0.1))
    assert np.array_equal(once.log, again.log) and [again.counted(k).tolist() for k in (0, 1)] == [[0], [0, 1]]


def test_earlier_fires_of_the_season_count_for_the_reference():
    """Three good fires, then bad ones: the more good ones there were, the more they say."""
    few, many = (
        daily_evidence(range(n + 4), range(n + 4), [5.5] * n + [0.5] * 4, rank_test(5), grows=True) for n in (3, 30)
    )
    assert many.log[-1] > few.log[-1]


def test_days_without_a_value_are_not_there():
    seen = daily_evidence([1, 2, 3], ["a", "b", "c"], [0.5, np.nan, 0.7], mean_test(0.2))
    assert seen.days.tolist() == [1, 3] and seen.counted(1).tolist() in ([0, 2], [2])
    assert daily_evidence([], [], [], mean_test(0.2)).log.size == 0


def test_impossible_values_are_refused():
    with pytest.raises(ValueError, match="at least 0"):
        mean_test(0.2)(NOTHING, np.array([-0.1]))


def test_shares_that_cannot_be_excluded():
    assert share_at_most(0, 27) == pytest.approx(1 - 0.025 ** (1 / 27))
    assert share_at_most(3, 3) == 1.0

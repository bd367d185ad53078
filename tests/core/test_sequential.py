"""Sequential tests: quiet seasons stay quiet though they are looked at daily, and a change is found in days."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.sequential import daily_evidence, log_wealth, share_at_most

ALPHA = 0.05
SEASONS = 200
MOST = 17
"""Of 200 seasons, false alarms at a rate of 5 % exceed this once in 50 times."""


def season(
    rng: np.random.Generator, mean: float, later: float | None = None, fires: int = 60
) -> tuple[np.ndarray, ...]:
    """Fires that begin any day and burn up to three weeks, good ones and bad ones; from day 60 on another mean."""
    days = np.ceil(rng.pareto(1.2, fires) + 0.2).clip(1, 21).astype(int)
    fire = np.repeat(np.arange(fires), days)
    day = (rng.integers(0, 120, fires)[fire] + np.concatenate([np.arange(n) for n in days])).astype(int)
    level = np.where((day >= 60) & (later is not None), later or 0, mean)
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
        evidence = daily_evidence(*season(np.random.default_rng(1000 + seed), 0.1, **changed), null)
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
        false += bool((log_wealth(value[np.argsort(day, kind="stable")], true_mean, 0.0) >= np.log(1 / ALPHA)).any())
    assert false > MOST


def test_a_change_in_the_middle_of_a_season_is_found(true_mean: float):
    found = [day for day in alarms(40, true_mean, later=0.45) if day is not None]
    assert len(found) >= 36
    assert np.median(found) - 60 <= 21 and sum(day < 60 for day in found) <= 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.05, 0.95))
def test_wealth_is_never_negative_and_no_order_matters(values: list[float], null: float):
    wealth = log_wealth(values, null, 0.0)
    assert np.isfinite(wealth).all()
    assert log_wealth(values[::-1], null, 0.0)[-1] == pytest.approx(wealth[-1])


@given(st.floats(0.05, 0.9), st.integers(1, 6))
def test_a_fair_coin_keeps_its_wealth_on_average(null: float, tosses: int):
    """All outcomes of some tosses with the null as their mean, each with its chance."""
    outcomes = (np.arange(2**tosses)[:, None] >> np.arange(tosses)) & 1
    chance = np.prod(np.where(outcomes == 1, null, 1 - null), axis=1)
    wealth = [np.exp(log_wealth(row, null, 0.0)[-1]) for row in outcomes]
    assert chance @ wealth == pytest.approx(1.0)


def test_a_fire_counts_once_in_each_test():
    once = daily_evidence([1, 2], ["a", "b"], [1.0, 1.0], 0.1)
    again = daily_evidence([1, 2, 2], ["a", "b", "a"], [1.0, 1.0, 1.0], 0.1)
    assert np.array_equal(once.log, again.log) and once.counted.tolist() == [1, 2]


def test_days_without_a_value_are_not_there():
    seen = daily_evidence([1, 2, 3], ["a", "b", "c"], [0.5, np.nan, 0.7], 0.2)
    assert seen.days.tolist() == [1, 3]
    assert daily_evidence([], [], [], 0.2).log.size == 0


def test_impossible_values_are_refused():
    with pytest.raises(ValueError, match="at least 0"):
        log_wealth([-0.1], 0.2, 0.0)


def test_shares_that_cannot_be_excluded():
    assert share_at_most(0, 27) == pytest.approx(1 - 0.025 ** (1 / 27))
    assert share_at_most(3, 3) == 1.0

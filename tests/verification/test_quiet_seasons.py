"""Quiet seasons, every kind of alarm at once: those that `verify` calls false.

200 of them: `python tests/helpers/quiet_seasons.py`.
"""

import pytest

from fcer.verification.alarms import SEASON_RATE, judge
from quiet_seasons import quiet_record

SEASONS = 40


@pytest.mark.slow
def test_quiet_seasons_raise_at_most_the_nominal_rate_of_alarms_of_all_kinds_together():
    assert SEASON_RATE == 0.05
    seasons = [judge(quiet_record(seed, fires=(10, 30)))[0] for seed in range(SEASONS)]
    assert {season.untested for season in seasons} == {()}
    assert sum(bool(season.alarms) for season in seasons) <= 5  # at 5 %, more once in 70 times


def test_days_taken_for_fires_would_raise_too_many():
    """That the seasons above can tell: the same tests on the same days, each as a fire of its own."""
    records = [quiet_record(seed, fires=(10, 40)) for seed in range(10)]
    assert sum(bool(judge(record.assign(fire=record["key"]))[0].alarms) for record in records) >= 2  # 5 %: once in 12

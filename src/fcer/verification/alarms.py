"""Whether a record still agrees with what was promised: four kinds of alarm, 5 % of false ones over a whole season.

    forecast      AP against that of persistence, or NLL skill near the fire, is lower than on validation fires
    uncertainty   AUROC of errors near the fire is lower than on validation fires
    zones         the share of what burnt outside of a zone, mean over fires, is above the zone's nominal miss
    inputs        inputs lack channels, or lie outside of what validation fires had, in more fires than expected

Each kind has a quarter of the 5 %, so that each may be believed by itself (`core/sequential.py` says how and on which
assumptions). A season is a calendar year of one student's forecasts.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from fcer.core.sequential import Evidence, daily_evidence, mean_test, rank_test, urn_evidence
from fcer.verification.fires import fire_numbers
from fcer.verification.truth import SEEN

__all__ = ["KINDS", "PROMISED", "SEASON_RATE", "Alarm", "Season", "judge"]

SEASON_RATE = 0.05
"""False alarms of a quiet season, of all kinds together, at most."""
KINDS = ("forecast", "uncertainty", "zones", "inputs")
PROMISED = ("lift", "nll_skill", "auroc")
"""Scores of which new fires should be like validation fires."""

_LIMIT = math.log(len(KINDS) / SEASON_RATE)


@dataclass(frozen=True)
class Alarm:
    """One promise that does not hold."""

    kind: str
    since: date
    words: str
    log_evidence: float


@dataclass(frozen=True)
class Season:
    """What one student's record of a year says."""

    model: str
    student: str
    year: int
    fires: int
    evidence: pd.DataFrame
    """By date, a column for each kind: the evidence's logarithm as a share of what raises the alarm, so that 1 does."""
    alarms: tuple[Alarm, ...]
    """At most one of a kind, the earliest first."""
    untested: tuple[str, ...]
    """Kinds of which nothing is promised, or nothing was seen."""

    @property
    def sentence(self) -> str:
        """What is wrong, in one sentence."""
        said = "; ".join(f"since {alarm.since} {alarm.words}" for alarm in self.alarms)
        return f"alarm: {self.model}, season {self.year}: {said}" if said else ""


@dataclass(frozen=True)
class _Test:
    kind: str
    evidence: Evidence
    spent: float
    """Logarithm of the number of tests that share the kind's rate, or more."""
    values: np.ndarray
    """Whose mean is told."""
    words: str
    """With a place for the mean and the fires."""


def judge(record: pd.DataFrame) -> list[Season]:
    """Each student's seasons, in the order of student and year. Inputs are judged before their day is seen."""
    years = record["date"].str[:4]
    return [
        _season(rows.sort_values(["date", "fire", "key"]), str(student), int(str(year)))
        for (student, year), rows in record.groupby(["student", years], sort=True)
    ]


def _season(rows: pd.DataFrame, student: str, year: int) -> Season:
    rows = rows.assign(number=fire_numbers(rows), day=[date.fromisoformat(text).toordinal() for text in rows["date"]])
    tests = [test for test in _tests(rows) if test.evidence.days.size]
    dates = np.unique(rows["day"])
    table = pd.DataFrame({"date": [str(date.fromordinal(day)) for day in dates]})
    for kind in KINDS:
        logs = [np.append(-np.inf, t.evidence.log)[_so_far(t, dates)] - t.spent for t in tests if t.kind == kind]
        table[kind] = np.maximum(np.max(logs, axis=0) / _LIMIT, -1.0) if logs else np.nan
    alarms = sorted(_alarms(tests), key=lambda alarm: (alarm.since, KINDS.index(alarm.kind)))
    first = {alarm.kind: alarm for alarm in reversed(alarms)}
    return Season(
        model=str(rows["model"].iloc[-1]),
        student=student,
        year=year,
        fires=int(rows.loc[rows["status"] == SEEN, "number"].nunique()),
        evidence=table,
        alarms=tuple(alarm for alarm in alarms if first[alarm.kind] is alarm),
        untested=tuple(kind for kind in KINDS if table[kind].isna().all()),
    )


def _so_far(test: _Test, dates: np.ndarray) -> np.ndarray:
    return np.searchsorted(test.evidence.days, dates, side="right")


def _alarms(tests: Iterable[_Test]) -> Iterator[Alarm]:
    for test in tests:
        passed = np.flatnonzero(test.evidence.log - test.spent >= _LIMIT)
        if passed.size:
            k = passed[0]
            counted = test.values[test.evidence.counted(k)]
            mean = f"{counted.mean():.2g} over {_fires(counted.size)}"
            since = date.fromordinal(int(test.evidence.days[k]))
            yield Alarm(test.kind, since, test.words.format(mean), float(test.evidence.log[k] - test.spent))


def _fires(count: int) -> str:
    return "1 fire" if count == 1 else f"{count} fires"


def _tests(rows: pd.DataFrame) -> Iterator[_Test]:
    # What is broken shows most clearly where forecasts are paired with another of the same day
    yield from _skill(rows, "forecast", "lift", "AP against persistence", share=2 / 3)
    yield from _skill(rows, "forecast", "nll_skill", "NLL skill near the fire", share=1 / 3)
    yield from _skill(rows, "uncertainty", "auroc", "AUROC of errors near the fire")
    yield from _zones(rows)
    yield from _inputs(rows)


def _skill(rows: pd.DataFrame, kind: str, name: str, words: str, share: float = 1.0) -> Iterator[_Test]:
    """Lower than on validation fires, with a share of the kind's rate.

    Where a new calibration brings others, which is rare, each is tested by itself with a quarter of the rate before.
    """
    promises = dict.fromkeys(rows.loc[rows[f"{name}_rank"].notna(), "promise"])
    for k, promise in enumerate(promises, start=1):
        held = rows[(rows["promise"] == promise) & rows[f"{name}_rank"].notna()]
        score = held[name].to_numpy()
        # Both in one number: among how many validation fires it lies, and the order of scores
        value = held[f"{name}_rank"].to_numpy() + 0.5 + np.arctan(score) / 4
        others = int(held[f"{name}_of"].iloc[0])
        evidence = daily_evidence(held["day"], held["number"], value, rank_test(others), grows=True)
        said = f"its {words} is {{}}, where {others} validation fires had {held[f'{name}_expected'].iloc[0]:.2g}"
        yield _Test(kind, evidence, (k - 1) * math.log(4) - math.log(0.75 * share), score, said)


def _zones(rows: pd.DataFrame) -> Iterator[_Test]:
    """Above the nominal miss. Each calibration is tested by itself, with less and less of the rate."""
    for k, calibration in enumerate(dict.fromkeys(rows["calibration"]), start=1):
        own = rows[rows["calibration"] == calibration]
        names = [name for name in rows if str(name).startswith("miss_") and own[name].notna().any()]
        for name in names:
            miss, values = float(str(name).removeprefix("miss_")), own[name].to_numpy()
            evidence = daily_evidence(own["day"], own["number"], values, mean_test(miss))
            spent, said = _later(k) + math.log(len(names)), f"zones for a miss of {miss:g} miss {{}}"
            yield _Test("zones", evidence, spent, values, said)


def _later(k: int) -> float:
    """Logarithm of one over the share of the rate that the k-th promise has: a half, a sixth, a twelfth and so on."""
    return math.log(k * (k + 1))


def _inputs(rows: pd.DataFrame) -> Iterator[_Test]:
    """Half of the kind's rate is for channels that are lacking, half for those that are outside their range."""
    most = rows["lacking_at_most"].max()
    if 0 < most < 1:
        lacking = (rows["lacking"] != "").to_numpy(dtype=float)
        evidence = daily_evidence(rows["day"], rows["number"], lacking, mean_test(most))
        named = ", ".join(sorted({name for text in rows["lacking"] if text for name in text.split(", ")}))
        yield _Test("inputs", evidence, math.log(2), lacking, f"inputs lack {named}: a share of {{}}")
    channels, least = rows["channels"].max(), rows["validation_fires"].min()
    if not (channels > 0 and least > 1):
        return
    fires = int(least)
    for name in sorted({one for text in rows["beyond"] if text for one in text.split(", ")}):
        outside = np.array([name in text.split(", ") for text in rows["beyond"]], dtype=float)
        # Of all values, those of new fires among them, the lowest and the highest are outside of what others had
        evidence = daily_evidence(rows["day"], rows["number"], outside, lambda _, x: urn_evidence(x > 0, 2, fires))
        words = f"{name} of the inputs is outside of what {fires} validation fires had: a share of {{}}"
        yield _Test("inputs", evidence, math.log(2 * channels), outside, words)

"""Seasons in which nothing is wrong, and how many raise an alarm, with every kind of test that `verify` runs.

A student's validation fires and the season's are drawn alike; ranks, ranges of inputs and zones come from the
validation fires by the functions that calibrate students, rows of the record by those of `verify`. What differs from
the plainest case is what differs on earth: fires burn for a day or for weeks, are small or large, begin in clusters;
days of one fire resemble each other; long fires may be worse or better than short ones, and young ones worse than old;
some days have no fire, or are not seen; some fires lack a channel.

    python tests/helpers/quiet_seasons.py --seasons 200
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from fcer.core.risk_control import control_risk, smallest_miss
from fcer.models.expectations import Expectations
from fcer.pipeline.expected import promise_of
from fcer.verification.alarms import PROMISED, Season, judge
from fcer.verification.forecast import Forecast
from fcer.verification.record import compared, read_record, row_of, with_rows
from fcer.verification.truth import MISSING, SEEN, WAITING, Truth

FIRST = date(2021, 5, 1)
SEASON_DAYS = 120
CHANNELS = ("NDVI", "EVI2", "wind speed", "temperature", "humidity", "slope")
MISSES = (0.05, 0.1, 0.2)
LEVELS = np.append(np.linspace(4, -6, 100), -np.inf)
"""Of zones, from the smallest to the whole image."""


@dataclass(frozen=True)
class World:
    """How a season's fires differ."""

    worse_if_long: float = 0.0
    """Correlation of a fire's length with how badly it is forecast."""
    worse_if_young: float = 0.0
    """On a fire's first day, in standard deviations between fires."""
    validation_fires: tuple[int, int] = (5, 40)
    fires: tuple[int, int] = (10, 80)

    @classmethod
    def drawn(cls, rng: np.random.Generator, **given: tuple[int, int]) -> "World":
        """One of six."""
        return cls(float(rng.choice([-0.5, 0, 0.5])), float(rng.choice([0, 0.5])), **given)


@dataclass(frozen=True)
class SimulatedFire:
    """What its days are scored."""

    scores: dict[str, np.ndarray]
    misses: np.ndarray
    """(days, levels): the share of burnt pixels outside of each zone."""
    burns: np.ndarray
    means: np.ndarray
    """(days, channels) of inputs, standardised."""
    lacks: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, world: World) -> "SimulatedFire":
        size = rng.normal()
        length = 0.7 * size + 0.7 * rng.normal()
        days = int(np.clip(np.ceil(np.exp(0.8 + 0.9 * length)), 1, 45))
        share = world.worse_if_long
        own = -share * length + np.sqrt(1 - share**2) * rng.normal(size=4)  # three scores and the zones
        noise = rng.normal(size=(days, 4))
        for day in range(1, days):
            noise[day] = 0.7 * noise[day - 1] + np.sqrt(0.51) * noise[day]
        age = np.exp(-np.arange(days) / 2)[:, None]
        good = 0.6 * own[3] + 0.8 * own + 0.6 * noise - world.worse_if_young * age
        pixels = int(np.clip(np.exp(3 + 1.2 * size), 3, 300))
        burnt = np.sort(0.8 * good[:, 3:] + rng.normal(0, 1.5, (days, pixels)), axis=1)
        return cls(
            scores={
                "lift": np.tanh(0.2 + 0.3 * good[:, 0]),
                "nll_skill": 0.6 - np.exp(-0.6 - 0.6 * good[:, 1]),
                "auroc": 1 / (1 + np.exp(-0.8 - 0.5 * good[:, 2])),
            },
            misses=np.stack([np.searchsorted(row, LEVELS) for row in burnt]) / pixels,
            burns=rng.random(days) > 0.05,
            means=rng.normal(size=len(CHANNELS)) + 0.3 * rng.normal(size=(days, len(CHANNELS))),
            lacks=rng.random(days) < 0.01,
        )


def promised(fires: list[SimulatedFire]) -> tuple[Expectations, dict[float, int]]:
    """What validation fires promise, and the place of each miss's zone among `LEVELS`."""
    days = {
        name: {k: fire.scores[name][fire.burns].tolist() for k, fire in enumerate(fires) if fire.burns.any()}
        for name in PROMISED
    }
    means = {name: np.concatenate([fire.means[:, k] for fire in fires]).tolist() for k, name in enumerate(CHANNELS)}
    expected = promise_of(days, means, sum(bool(fire.lacks.any()) for fire in fires), len(fires))
    assert expected is not None
    losses = np.array([fire.misses[fire.burns].mean(axis=0) for fire in fires if fire.burns.any()])
    kept = [miss for miss in MISSES if miss >= smallest_miss(len(losses))]
    return expected, {miss: control_risk(losses, miss).place for miss in kept}


def quiet_record(seed: int, **given: tuple[int, int]) -> pd.DataFrame:
    """The record of one season."""
    rng = np.random.default_rng(seed)
    world = World.drawn(rng, **given)
    n_validation, n_fires = (int(rng.integers(low, high + 1)) for low, high in (world.validation_fires, world.fires))
    expected, places = promised([SimulatedFire.drawn(rng, world) for _ in range(n_validation)])
    storms = rng.integers(0, SEASON_DAYS, 8)
    alone = rng.random(n_fires) < 0.5
    starts = np.where(alone, rng.integers(0, SEASON_DAYS, n_fires), rng.choice(storms, n_fires))
    rows = []
    for number, start in enumerate(starts):
        fire = SimulatedFire.drawn(rng, world)
        for k, seen in enumerate(rng.random(fire.burns.size) > 0.05):
            day = FIRST + timedelta(days=int(start) + k)
            forecast = _forecast(f"fire_{number}", day, fire, k, expected, tuple(places))
            row = row_of(forecast, Truth(WAITING if seen else MISSING, None, ""))
            if seen:
                row["status"] = SEEN
            if seen and fire.burns[k]:
                row |= {name: float(values[k]) for name, values in fire.scores.items()}
                row |= compared(forecast, row)
                row |= {f"miss_{miss:g}": fire.misses[k, place] for miss, place in places.items()}
            rows.append(row)
    return with_rows(read_record(Path("no such file")), rows)


def _forecast(
    name: str, day: date, fire: SimulatedFire, k: int, expected: Expectations, misses: tuple[float, ...]
) -> Forecast:
    return Forecast(
        path=Path(f"{name}.tif"),
        fire=name,
        day=day,
        last_input=day - timedelta(days=1),
        model={"student_key": "s"},
        calibration="c",
        threshold=expected.threshold,
        anchor_px=4.0,
        misses=misses,
        lacking=CHANNELS[:1] if fire.lacks[k] else (),
        means=dict(zip(CHANNELS, fire.means[k].tolist(), strict=True)),
        expected=expected,
        synthetic=True,
        place=None,
        shape=(32, 32),
        pixel_m=(375.0, 375.0),
        box=None,
    )


def quiet_season(seed: int, **given: tuple[int, int]) -> Season:
    """What `verify` says of one."""
    (season,) = judge(quiet_record(seed, **given))
    return season


def main() -> None:
    """How many seasons raise an alarm, and of which kinds."""
    from scipy.stats import binomtest

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seasons", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first season")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    alarmed = 0
    for seed in range(options.seed, options.seed + options.seasons):
        season = quiet_season(seed)
        alarmed += bool(season.alarms)
        kinds.update(alarm.kind for alarm in season.alarms)
    ends = binomtest(alarmed, options.seasons).proportion_ci(0.95)
    said = f"{alarmed} of {options.seasons} quiet seasons raised an alarm"
    print(f"{said} (95 % interval {ends.low:.1%} to {ends.high:.1%})")
    print(", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "of no kind")


if __name__ == "__main__":
    main()

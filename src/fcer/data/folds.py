"""Which years train, validate and test: the folds that released checkpoints are numbered by."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fcer.errors import ConfigError, DataError

__all__ = [
    "FIRES",
    "GROUPS",
    "NO_YEAR",
    "SPLITS",
    "WSTS",
    "WSTS_PLUS",
    "FireBox",
    "Fold",
    "Slot",
    "fair_folds",
    "fire_groups",
    "operational_folds",
    "slots_of",
    "years_of",
]


class Fold(NamedTuple):
    """One split of the dataset by years."""

    number: int
    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


class Slot(NamedTuple):
    """A member's place in an ensemble: its fold, and how many members of that fold come before it."""

    fold: Fold
    round: int

    @property
    def label(self) -> str:
        """The fold's number, with the round's behind it where it is not the first: `2`, then `2-1`."""
        return f"{self.fold.number}-{self.round}" if self.round else str(self.fold.number)


_WSTS_YEARS = (
    (2018, 2019, 2020, 2021),
    (2018, 2019, 2021, 2020),
    (2018, 2020, 2019, 2021),
    (2018, 2020, 2021, 2019),
    (2018, 2021, 2019, 2020),
    (2018, 2021, 2020, 2019),
    (2019, 2020, 2018, 2021),
    (2019, 2020, 2021, 2018),
    (2019, 2021, 2018, 2020),
    (2019, 2021, 2020, 2018),
    (2020, 2021, 2018, 2019),
    (2020, 2021, 2019, 2018),
)

WSTS = tuple(Fold(k, (a, b), (v,), (t,)) for k, (a, b, v, t) in enumerate(_WSTS_YEARS))
"""WildfireSpreadTS: two years train, one validates, one tests."""

WSTS_PLUS = (
    Fold(0, (2016, 2017, 2020, 2021), (2018, 2019), (2022, 2023)),
    Fold(1, (2018, 2019, 2022, 2023), (2020, 2021), (2016, 2017)),
    Fold(2, (2016, 2017, 2020, 2021), (2022, 2023), (2018, 2019)),
    Fold(3, (2018, 2019, 2022, 2023), (2016, 2017), (2020, 2021)),
)
"""WSTS+: four years train, two validate, two test."""

GROUPS = (1, 2, 3, 4)
"""Groups of fires that play the years' part where a dataset does not span four years."""

FIRES = tuple(
    Fold(k, (GROUPS[a - 2018], GROUPS[b - 2018]), (GROUPS[v - 2018],), (GROUPS[t - 2018],))
    for k, (a, b, v, t) in enumerate(_WSTS_YEARS)
)
"""Folds by fire: two groups train, one validates, one tests, in the order of WildfireSpreadTS."""

NO_YEAR = 0
"""Stands for the test year of members that hold nothing out."""

SPLITS: Mapping[str, tuple[Fold, ...]] = {"wsts": WSTS, "wsts_plus": WSTS_PLUS, "fires": FIRES}
"""The folds of each dataset by the name that a configuration gives it."""


def years_of(folds: Sequence[Fold]) -> tuple[int, ...]:
    """The years that are tested on, which are all years of the dataset."""
    return tuple(sorted({year for fold in folds for year in fold.test}))


def operational_folds(folds: Sequence[Fold]) -> tuple[Fold, ...]:
    """Folds that hold nothing out: each year validates once, all others train.

    Numbered after the split's own, so that no file of theirs is taken for one of these.
    """
    years = years_of(folds)
    return tuple(
        Fold(len(folds) + k, tuple(other for other in years if other != year), (year,), ())
        for k, year in enumerate(years)
    )


def slots_of(folds: Sequence[Fold]) -> list[Slot]:
    """The places of members of `folds`: a fold that is there again is in its next round."""
    return [Slot(fold, folds[:k].count(fold)) for k, fold in enumerate(folds)]


def fair_folds(test_year: int, folds: tuple[Fold, ...] = WSTS) -> tuple[Fold, ...]:
    """The folds that neither train nor validate on `test_year`: the fair teacher of that year."""
    fair = tuple(fold for fold in folds if test_year in fold.test)
    if not fair:
        years = ", ".join(map(str, years_of(folds)))
        raise ConfigError(f"year: no fold tests on {test_year}; choose one of {years}")
    return fair


class FireBox(NamedTuple):
    """What decides a fire's group."""

    bounds: tuple[float, float, float, float]
    """West, south, east, north in degrees; east may be beyond 180, or the smaller one, across the date line."""
    pixels: int
    """Of fire, over all days."""
    digest: str
    """Changes with what the fire holds."""


def fire_groups(fires: Mapping[str, FireBox], seed: int = 0) -> dict[str, int]:
    """Deal fires into the four groups: alike in fire pixels, and fires whose boxes touch in the same one.

    The largest go first, each to the group that has least; what the fires hold and the seed decide, not their
    order or names. Of touching fires one could be the other's label, so they are dealt as one.
    """
    clumps = _touching(fires)
    if len(clumps) < len(GROUPS):
        raise DataError(
            f"{len(fires)} fires in {len(clumps)} separate places cannot be dealt into {len(GROUPS)} groups; "
            "give detections of more days or a wider area"
        )
    loads = dict.fromkeys(GROUPS, 0.0)
    groups: dict[str, int] = {}
    for clump in sorted(clumps, key=lambda names: _weight(names, fires, seed), reverse=True):
        group = min(GROUPS, key=lambda g: (loads[g], g))
        # A clump without fire weighs a little too, or all of them would end in one group
        loads[group] += max(0.5, sum(fires[name].pixels for name in clump))
        groups.update(dict.fromkeys(clump, group))
    return {name: groups[name] for name in fires}


def _weight(names: Sequence[str], fires: Mapping[str, FireBox], seed: int) -> tuple[float, str]:
    """Pixels, up to a fifth more or less by the seed: other seeds deal in another order."""
    said = " ".join([str(seed), *sorted(fires[name].digest for name in names)])
    digest = hashlib.sha256(said.encode()).hexdigest()
    chance = int(digest[:8], 16) / 0xFFFFFFFF
    return sum(fires[name].pixels for name in names) * (0.8 + 0.4 * chance), digest


def _touching(fires: Mapping[str, FireBox]) -> list[list[str]]:
    """Fires joined by boxes that touch, one after the other."""
    left, clumps = list(fires), []
    while left:
        clump = [left.pop(0)]
        for name in clump:  # grows while it is gone through
            near = [other for other in left if _touch(fires[name].bounds, fires[other].bounds)]
            clump += near
            left = [other for other in left if other not in near]
        clumps.append(clump)
    return clumps


def _touch(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    (west, south, east, north), (other_west, other_south, other_east, other_north) = a, b
    # Eastwards from one's western side to the other's, all the way round the globe if need be
    starts_in = (other_west - west) % 360 <= (east - west) % 360
    holds_start = (west - other_west) % 360 <= (other_east - other_west) % 360
    return south <= other_north and other_south <= north and (starts_in or holds_start)

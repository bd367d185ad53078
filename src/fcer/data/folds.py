"""Which years train, validate and test: the folds that released checkpoints are numbered by."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fcer.errors import ConfigError

__all__ = ["SPLITS", "WSTS", "WSTS_PLUS", "Fold", "Slot", "fair_folds", "slots_of", "years_of"]


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

SPLITS: Mapping[str, tuple[Fold, ...]] = {"wsts": WSTS, "wsts_plus": WSTS_PLUS}
"""The folds of each dataset by the name that a configuration gives it."""


def years_of(folds: Sequence[Fold]) -> tuple[int, ...]:
    """The years that are tested on, which are all years of the dataset."""
    return tuple(sorted({year for fold in folds for year in fold.test}))


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

"""Which years train, validate and test: the folds that released checkpoints are numbered by."""

from typing import NamedTuple

from fcer.errors import ConfigError

__all__ = ["WSTS", "WSTS_PLUS", "Fold", "fair_folds"]


class Fold(NamedTuple):
    """One split of the dataset by years."""

    number: int
    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


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


def fair_folds(test_year: int, folds: tuple[Fold, ...] = WSTS) -> tuple[Fold, ...]:
    """The folds that neither train nor validate on `test_year`: the fair teacher of that year."""
    fair = tuple(fold for fold in folds if test_year in fold.test)
    if not fair:
        years = sorted({year for fold in folds for year in fold.test})
        raise ConfigError(f"year: no fold tests on {test_year}; choose one of {', '.join(map(str, years))}")
    return fair

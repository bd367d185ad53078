"""What is wrong with a setting's value, in words: each check returns a sentence's end, or None for a good value."""

import re
from collections.abc import Sequence

__all__ = ["METHODS", "anchor", "cluster", "crop", "features", "methods", "ordered", "radii", "year_or_all", "years"]

METHODS = (
    "student",
    "ensemble",
    "entropy",
    "ensemble_entropy",
    "ensemble_mi",
    "mc_dropout",
    "tta",
    "random",
    "boundary_distance",
)
"""Methods that `evaluate` knows; those that cost passes of their own are left out where none are named."""

_FEATURE_SETS = ("vegetation", "multi", "all", "fire")


def ordered(value: Sequence[int]) -> str | None:
    """Two numbers in order."""
    return None if len(value) == 2 and value[0] <= value[1] else "give two numbers, the smaller one first"


def years(value: Sequence[int]) -> str | None:
    """At least one year, each once."""
    if not value:
        return "name at least one year"
    return None if len(set(value)) == len(value) else "name each year once"


def cluster(value: str) -> str | None:
    """The address of a scheduler, or some processes here."""
    if re.fullmatch(r"(tcp|tls|ucx)://[^/\s]+:\d+", value) or re.fullmatch(r"local:[1-9]\d*", value):
        return None
    return "give a scheduler's address such as tcp://scheduler:8786, or local:N for N processes here"


def crop(value: int) -> str | None:
    """A side that the backbones can take."""
    return (
        f"not a multiple of 32, which the backbones need; try {max(32, 32 * round(value / 32))}" if value % 32 else None
    )


def features(value: str | Sequence[int]) -> str | None:
    """A named set, or indices."""
    if isinstance(value, str):
        return None if value in _FEATURE_SETS else f"use {', '.join(_FEATURE_SETS)} or a list of indices from 0 to 39"
    return None if value and len(set(value)) == len(value) else "name one index at least, and each once"


def _radius(value: float | str, words: Sequence[str]) -> str | None:
    metres = isinstance(value, str) and re.fullmatch(r"\d+(\.\d*)?(m|px)?", value)
    if isinstance(value, float) or metres or value in words:
        return None
    return f"give px from 0 on, metres such as 1500m, or {words[0]}"


def anchor(value: float | str) -> str | None:
    """A radius, or `auto`."""
    return _radius(value, ["auto"])


def radii(value: Sequence[float | str]) -> str | None:
    """Radii, or `full`."""
    return next((wrong for radius in value if (wrong := _radius(radius, ["full"]))), None)


def methods(value: Sequence[str]) -> str | None:
    """Known methods, each once."""
    if not value or len(set(value)) < len(value):
        return "name one method at least, and each once"
    unknown = [name for name in value if name not in METHODS]
    return f"there is no method {unknown[0]}; choose among {', '.join(METHODS)}" if unknown else None


def year_or_all(value: int | str) -> str | None:
    """A year, or `all`."""
    return None if isinstance(value, int) or value == "all" else "give a year, or all"

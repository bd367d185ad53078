"""What is wrong with a setting's value, in words: each check returns a sentence's end, or None for a good value."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from fcer.runtime import doors

__all__ = [
    "METHODS",
    "ON_REQUEST",
    "address",
    "anchor",
    "cluster",
    "crop",
    "features",
    "layers",
    "methods",
    "ordered",
    "radii",
    "shares",
    "teacher",
    "threshold",
    "writable",
    "year",
    "years",
]

METHODS = (
    "student",
    "ensemble",
    "entropy",
    "calibrated_entropy",
    "ensemble_entropy",
    "ensemble_mi",
    "mc_dropout",
    "tta",
    "laplace",
    "density",
    "swag",
    "packed",
    "diffusion",
    "random",
    "boundary_distance",
    "today_distance",
    "probability",
    "persistence",
)
"""Methods of this package that `evaluate` knows; other packages may bring more."""

ON_REQUEST = (
    *("calibrated_entropy", "mc_dropout", "tta", "laplace", "density", "swag", "packed", "diffusion"),
    *("today_distance", "persistence"),
)
"""Those that are compared only where they are named."""

_LONGEST_NAME = 255
_FEATURE_SETS = ("vegetation", "multi", "all", "fire")


def writable(value: str | Path) -> str | None:
    """A text that a file system, and a database, can hold as a name."""
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:
        return "it holds half a character, which nothing can be called"
    if b"\0" in encoded:
        return "it holds a NUL, which nothing can be called"
    if isinstance(value, Path) and re.match(r"[A-Za-z][\w+.-]+:/", str(value)):
        return "an address, where a file or folder here is needed"
    if isinstance(value, Path) and any(len(part) > _LONGEST_NAME for part in encoded.split(b"/")):
        return f"a name in it is longer than {_LONGEST_NAME} bytes"
    return None


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
    scheduler = re.fullmatch(r"(tcp|tls|ucx)://[^/\s]+:\d+", value) and address(value) is None
    if scheduler or re.fullmatch(r"local:[1-9]\d*", value):
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
    if all(name in METHODS for name in value):
        return None
    known = (*METHODS, *doors.names(doors.METHODS))
    unknown = [name for name in value if name not in known]
    return f"there is no method {unknown[0]}; choose among {', '.join(known)}" if unknown else None


def teacher(value: str) -> str | None:
    """A method that does not need the student."""
    if value in ("student", "persistence", "laplace", "density"):
        return f"{value} has nothing to teach before there is a student; choose another method"
    return methods([value])


def year(value: int | str) -> str | None:
    """A year, or a word."""
    return None if isinstance(value, int) or value in ("all", "none") else "give a year, all, or none"


def threshold(value: float | str) -> str | None:
    """A probability, or `balanced`."""
    return None if isinstance(value, float) or value == "balanced" else "give a number from 0 to 1, or balanced"


def shares(value: Sequence[float]) -> str | None:
    """Shares strictly between none and all, each once."""
    if not value or len(set(value)) < len(value):
        return "name one share at least, and each once"
    return None if all(0 < share < 1 for share in value) else "give shares above 0 and below 1"


def layers(value: Sequence[str]) -> str | None:
    """NAME=FILE, each name once."""
    named = [layer.partition("=") for layer in value]
    if any(not (name and file) for name, _, file in named):
        return "write each as NAME=FILE"
    return None if len({name for name, _, _ in named}) == len(named) else "name each channel once"


def address(value: str) -> str | None:
    """A name, or an address that can be taken apart."""
    try:
        urlsplit(value).port  # noqa: B018 (a port that is no number is found when it is asked for)
    except ValueError:  # whose words may hold a password
        return "not an address that can be read; brackets and ports belong to the host, else write %5B for ["
    return None

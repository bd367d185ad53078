"""One conversion for YAML, flags and the headers of files: the type hints of a dataclass say what a value must be."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["converted", "filled", "from_text", "hints", "in_words", "item_type", "parts", "scalar", "shown"]

from fcer.runtime.secrets import masked

T = TypeVar("T")

_WRONG = object()

_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a name",
    Path: "a path",
    types.NoneType: "none",
}

_SHOWN = 200
"""Characters of a value that an error repeats."""


def parts(hint: Any) -> tuple[Any, ...]:
    """The types that a hint accepts: a union taken apart."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def item_type(hint: Any) -> Any:
    """The type of a list's items where the hint accepts a list, else None."""
    return next((typing.get_args(kind)[0] for kind in parts(hint) if typing.get_origin(kind) is tuple), None)


@functools.cache
def hints(cls: type) -> dict[str, Any]:
    """The type of each field of a dataclass."""
    resolved = typing.get_type_hints(cls)
    return {field.name: resolved[field.name] for field in dataclasses.fields(cls)}


def in_words(hint: Any) -> str:
    """A type in words."""
    return " or ".join(
        _NAMES[kind] if kind in _NAMES else "a list, each item " + in_words(typing.get_args(kind)[0])
        for kind in parts(hint)
    )


def shown(value: Any) -> str:
    """A value as an error repeats it: without passwords, and not at any length."""
    return _cut(masked(repr(value)))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def converted(value: Any, hint: Any) -> Any:
    """The value in the hint's type, without guessing: 1 is no truth value, "4" no number.

    Raises
    ------
    ValueError
        With the end of a sentence that begins with what the value is.
    """
    fit = _first_fit(value, hint)
    if fit is _WRONG:
        raise ValueError(f"{shown(value)}, but should be {in_words(hint)}")
    return fit


def filled(cls: type[T], values: Mapping[str, Any]) -> T:
    """An object of a dataclass from a file's values by name; what has a default may be missing.

    Raises
    ------
    ValueError
        Saying what is missing, unknown or of a wrong type; whatever the dataclass raises itself comes through.
    """
    known = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    needed = {name for name, field in known.items() if field.default is dataclasses.MISSING}
    wrong = sorted((values.keys() - known.keys()) | (needed - values.keys()))
    if wrong:
        raise ValueError(f"{_cut(', '.join(wrong))} missing or unknown")
    types_of, fields = hints(cls), {}  # type: ignore[arg-type]
    for name, value in values.items():
        try:
            fields[name] = converted(value, types_of[name])
        except ValueError as error:
            raise ValueError(f"{name} is {error}") from None
    return cls(**fields)


def from_text(text: str | Sequence[str], hint: Any) -> Any:
    """What a flag's text stands for, in the way YAML would have given it."""
    accepted = parts(hint)
    words = [text] if isinstance(text, str) else list(text)
    item = item_type(hint)
    if words == ["none"] and (item or types.NoneType in accepted):
        return None if types.NoneType in accepted else []
    if item is Path:
        # MLflow hands several files over as one word; a file whose name has spaces is one word too
        return [part for word in words for part in ([word] if _exists(word) else word.split())]
    if item is str:
        # A name may look like a number, and a file that is named after an equals sign may have spaces
        return [part for word in words for part in ([word] if _exists(word.partition("=")[2]) else _split(word))]
    if item:
        # `--years 2018 2019`, `--years 2018,2019` and MLflow's one quoted word all mean the same
        several = [part for word in words for part in _split(word)]
        if str not in accepted or len(several) > 1 or all(isinstance(scalar(part), int) for part in several):
            return [scalar(part) for part in several]
        words = several
    word = " ".join(words)
    numbers = int in accepted or float in accepted
    return word if (Path in accepted or str in accepted) and not numbers else scalar(word)


def scalar(text: str) -> Any:
    """A number or a truth value where the text is one, else the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def _split(word: str) -> list[str]:
    return word.replace(",", " ").split()


def _exists(word: str) -> bool:
    try:
        return word != "" and Path(word).exists()
    except (OSError, ValueError):  # a name that is too long, or has a NUL in it
        return False


def _first_fit(value: Any, hint: Any) -> Any:
    """`value` as the first of the types that takes it, else _WRONG."""
    return next((fit for kind in parts(hint) if (fit := _fit(value, kind)) is not _WRONG), _WRONG)


def _fit(value: Any, kind: Any) -> Any:
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            return _WRONG
        items = tuple(_first_fit(item, typing.get_args(kind)[0]) for item in value)
        return _WRONG if any(item is _WRONG for item in items) else items
    if kind is types.NoneType:
        return None if value is None else _WRONG
    if kind is Path:
        return _path(value) if isinstance(value, str | Path) and str(value) else _WRONG
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else _WRONG
    if kind is float and isinstance(value, int | float):
        return _finite(value)
    return value if isinstance(value, kind) else _WRONG


def _path(value: str | Path) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError:  # nobody here is called so: a name that begins with ~
        return Path(value)


def _finite(value: float) -> Any:
    try:
        return float(value) if math.isfinite(value) else _WRONG
    except OverflowError:  # a whole number beyond every float
        return _WRONG

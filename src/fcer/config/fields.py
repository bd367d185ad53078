"""What is known of a setting by its name: its field, its types, its meaning."""

import dataclasses
import functools
from typing import Any

from fcer.config.conversion import hints, parts
from fcer.config.demo import DEMO
from fcer.config.option import Option
from fcer.config.settings import Config

__all__ = ["fields", "help_text", "kinds", "option_of"]


@functools.cache
def fields() -> dict[str, dataclasses.Field[Any]]:
    """The fields of Config by name."""
    return {field.name: field for field in dataclasses.fields(Config)}


def option_of(key: str) -> Option:
    """What a setting means and may be."""
    known: Option = fields()[key].metadata["option"]
    return known


def kinds(key: str) -> tuple[Any, ...]:
    """The types that a setting accepts."""
    return parts(hints(Config)[key])


def help_text(key: str, *, demo: bool = False) -> str:
    """What a setting means and its default, as `--help` prints it; with `demo`, the demo's too where that differs."""
    default = fields()[key].default
    text = _as_typed(default)
    if demo and DEMO.get(key, default) != default:
        text = f"{_as_typed(DEMO[key])} in the demo, else {text}"
    return f"{option_of(key).meaning} (default: {text})"


def _as_typed(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    items = value if isinstance(value, tuple) else (value,)
    return " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items) or "none"

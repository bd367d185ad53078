"""One setting: its default, what it means and the values it may take."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fcer.runtime import doors

__all__ = ["Option", "option"]

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """What a field's type does not say about its values."""

    meaning: str
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    check: Callable[[Any], str | None] | None = None
    """Returns what is wrong with a value, or None."""
    door: str = ""
    """Group of entry points that bring more choices."""

    @property
    def brought(self) -> tuple[str, ...]:
        """Choices that are not ours."""
        return doors.names(self.door) if self.door else ()


def option(
    default: T,
    meaning: str,
    *,
    choices: Sequence[str] = (),
    low: float = -math.inf,
    high: float = math.inf,
    check: Callable[[Any], str | None] | None = None,
    door: str = "",
) -> T:
    """A dataclass field that carries an `Option`; to the type checker it is its default."""
    return field(default=default, metadata={"option": Option(meaning, tuple(choices), low, high, check, door)})

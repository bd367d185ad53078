"""Doors for what others bring by name: Python entry points of their packages, or a decorator in this process.

Names cost a look at what is installed; nothing of another package is imported before one of its names is asked for.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fcer.errors import warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["BACKBONES", "CALIBRATORS", "DATASETS", "GROUPS", "METHODS", "Door", "made_as", "names", "signed"]

GROUPS = ("fcer.methods", "fcer.backbones", "fcer.datasets", "fcer.calibrators")
METHODS, BACKBONES, DATASETS, CALIBRATORS = GROUPS
"""Groups of entry points."""

T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)

_registered: dict[str, list[str]] = {}
"""By decorators outside this package, as in a notebook."""


def names(group: str) -> tuple[str, ...]:
    """What is not ours: registered in this process, and what other packages say that they bring."""
    return tuple(dict.fromkeys([*_registered.get(group, []), *(entry.name for entry in _entries(group))]))


def signed(group: str, name: str) -> str:
    """The name, with package and version where another package brings it: those decide results, as our version does."""
    if name in _registered.get(group, []):
        return name
    package = {entry.name: entry.dist for entry in _entries(group)}.get(name)
    return f"{name} of {package.name} {package.version}" if package else name


def made_as(protocol: type[T], kind: Any, lacking: str) -> T:
    """An object of a class, or the object itself, that does what a protocol asks for; TypeError with what it lacks."""
    made = kind() if isinstance(kind, type) else kind
    if not isinstance(made, protocol):
        raise TypeError(lacking)
    return made


class Door(Generic[T]):
    """One group: what `accept` makes of each thing by its name, or an error that says why it cannot be used."""

    def __init__(self, group: str, accept: Callable[[str, Any], T]) -> None:
        self.group = group
        self._accept = accept
        self._own: dict[str, T] = {}

    @property
    def own(self) -> Mapping[str, T]:
        """What is registered in this process."""
        return MappingProxyType(self._own)

    def __call__(self, name: str) -> Callable[[Kind], Kind]:
        """The decorator of a class that is to be known as `name`."""

        def register(kind: Kind) -> Kind:
            self._own[name] = self._accept(name, kind)
            if not kind.__module__.startswith("fcer."):
                _registered.setdefault(self.group, []).append(name)
            return kind

        return register

    @cached_property
    def brought(self) -> Mapping[str, T]:
        """What other packages bring; what cannot be used is named in a warning and left out."""
        found: dict[str, T] = {}
        for entry in _entries(self.group):
            try:
                if entry.name in self._own or entry.name in found:
                    raise ValueError("the name is taken")
                found[entry.name] = self._accept(entry.name, entry.load())
            except Exception as error:  # whatever another package's import raises
                door = self.group.removeprefix("fcer.")
                warn(f"{door}: {entry.name} ({entry.value}) is left out: {error}")
        return MappingProxyType(found)

    @property
    def installed(self) -> dict[str, T]:
        """Everything by name, ours first."""
        return {**self._own, **self.brought}

    def find(self, name: str) -> T | None:
        """What is called `name`; other packages are looked at only where it is not ours."""
        return self._own[name] if name in self._own else self.brought.get(name)


def _entries(group: str) -> "tuple[EntryPoint, ...]":
    return _installed(group, tuple(sys.path))


@cache
def _installed(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":  # noqa: ARG001 (where it looks)
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name))

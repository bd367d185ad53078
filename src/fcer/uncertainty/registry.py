"""Methods by name: those of this package, and those that other packages bring as entry points of `fcer.methods`.

A method is a class with the attributes of `Method`; subclassing it is the shortest way to have them all. Here it is
registered by `@method("name")`, elsewhere by a line in `pyproject.toml`:

    [project.entry-points."fcer.methods"]
    my_method = "my_package:MyMethod"
"""

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from fcer.config.checks import METHODS
from fcer.errors import ConfigError, FcerWarning
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch

__all__ = ["GROUP", "Counts", "Draws", "Method", "installed_methods", "method", "method_named"]

GROUP = "fcer.methods"
"""Under which other packages name their methods."""

_FAMILIES = (
    *("student", "ensemble", "entropy", "mc_dropout", "tta", "laplace", "density", "swag", "packed", "diffusion"),
    *("controls", "persistence"),
)
"""Modules of this package that register methods."""


@runtime_checkable
class Method(Protocol):
    """How a method gives probability and uncertainty, and what it costs."""

    control: ClassVar[bool] = False
    """Whether it is no method at all but a check: knows nothing of the input, or nothing but the probability."""
    ranks: ClassVar[bool] = True
    """Whether its uncertainty says anything; else it is there for its probability alone."""

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """Probability of fire (B, H, W); the student's backbone's unless a method has its own."""
        return seen.prob_BHW

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Uncertainty (B, H, W), 0 to 1."""
        raise NotImplementedError

    def passes(self, predictors: Predictors) -> int:  # noqa: ARG002
        """How many passes through a backbone it takes where it runs alone."""
        return 1

    def check(self, predictors: Predictors) -> None:
        """Refuse predictors that it cannot work with, before anything is predicted."""


@runtime_checkable
class Counts(Protocol):
    """A method that has learnt other numbers than those of the student's backbone."""

    def parameters(self, predictors: Predictors) -> int:
        """How many."""
        ...


@runtime_checkable
class Draws(Protocol):
    """A method that can show the maps behind its probability, as many as there are `--passes`."""

    def samples(self, seen: SeenBatch) -> FloatMaps:
        """Draws of tomorrow's fire (B, passes, H, W), 1 where it burns."""
        ...


_OWN: dict[str, Method] = {}
M = TypeVar("M", bound=type)


def method(name: str) -> Callable[[M], M]:
    """Register a class of this package under `name`."""

    def register(kind: M) -> M:
        _OWN[name] = kind()
        return kind

    return register


@cache
def installed_methods() -> Mapping[str, Method]:
    """Every method by name, ours first; a plug-in that cannot be used is named in a warning and left out."""
    for family in _FAMILIES:
        import_module(f"fcer.uncertainty.{family}")
    found = {name: _OWN[name] for name in METHODS}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found[entry.name] = _loaded(entry, found)
        except Exception as error:  # whatever another package's import raises
            warnings.warn(f"methods: {entry.name} ({entry.value}) is left out: {error}", FcerWarning, 2)
    return MappingProxyType(found)


def method_named(name: str) -> Method:
    """The method called `name`."""
    methods = installed_methods()
    if name not in methods:
        raise ConfigError(f"methods: there is no method {name}; choose among {', '.join(methods)}")
    return methods[name]


def _loaded(entry: EntryPoint, others: Mapping[str, Method]) -> Method:
    if entry.name in others:
        raise ValueError("the name is taken")
    kind = entry.load()
    made = kind() if isinstance(kind, type) else kind
    if not isinstance(made, Method):
        raise TypeError("it lacks an attribute of fcer.uncertainty.registry.Method; subclass that")
    return made

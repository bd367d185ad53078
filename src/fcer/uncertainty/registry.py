"""Methods by name: those of this package, and those that other packages bring as entry points of `fcer.methods`.

A method is a class with the attributes of `Method`; subclassing it is the shortest way to have them all. Here it is
registered by `@method("name")`, elsewhere by a line in `pyproject.toml`:

    [project.entry-points."fcer.methods"]
    my_method = "my_package:MyMethod"
"""

from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

from fcer.config.checks import METHODS
from fcer.errors import ConfigError
from fcer.runtime import doors
from fcer.runtime.doors import Door, made_as
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch

__all__ = ["Counts", "Draws", "Method", "installed_methods", "method", "method_named"]

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

    @abstractmethod
    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Uncertainty (B, H, W), 0 to 1."""
        ...

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


def _accepted(_: str, kind: Any) -> Method:
    return made_as(Method, kind, "it lacks an attribute of fcer.uncertainty.registry.Method; subclass that")


method: Door[Method] = Door(doors.METHODS, _accepted)
"""`@method("name")` registers a class."""


def installed_methods() -> Mapping[str, Method]:
    """Every method by name, ours first; a plug-in that cannot be used is named in a warning and left out."""
    for family in _FAMILIES:
        import_module(f"fcer.uncertainty.{family}")
    known = method.installed
    return {name: known[name] for name in dict.fromkeys((*METHODS, *known))}


def method_named(name: str) -> Method:
    """The method called `name`."""
    methods = installed_methods()
    if name not in methods:
        raise ConfigError(f"methods: there is no method {name}; choose among {', '.join(methods)}")
    return methods[name]

"""One setting of the head that is searched: its range or choices, and when it is searched at all."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import optuna

from fcer.config.fields import kinds
from fcer.config.resolve import checked
from fcer.errors import ConfigError

__all__ = ["KINDS", "LAYERS", "WIDTH", "Dimension", "Value", "read_dimension"]

KINDS = ("float", "int", "categorical")
LAYERS, WIDTH = "head_hidden.layers", "head_hidden.width"
"""Two dimensions that together stand for `head_hidden`."""

Value = bool | int | float | str
"""What optuna stores: a list is stored as its JSON text."""

_MOST_LAYERS = 8


@dataclass(frozen=True)
class Dimension:
    """A range of numbers, or choices."""

    name: str
    kind: str
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()
    """As the configuration has them."""
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Earlier dimensions, each with the values under which this one is searched; stored values."""

    def active(self, params: Mapping[str, Value]) -> bool:
        """Whether this one is searched beside `params`."""
        return all(params.get(other) in allowed for other, allowed in self.when.items())

    def suggest(self, trial: optuna.Trial) -> Value:
        """Let the study's sampler choose."""
        if self.kind == "categorical":
            return cast(Value, trial.suggest_categorical(self.name, [stored(choice) for choice in self.choices]))
        if self.kind == "int":
            step = int(self.step or 1)
            return trial.suggest_int(self.name, int(self.low), int(self.high), step=step, log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)

    def setting(self, value: Value) -> Any:
        """A stored value as the configuration has it."""
        if self.kind != "categorical":
            return value
        return next(choice for choice in self.choices if stored(choice) == value)

    def holds(self, value: Value) -> bool:
        """Whether a stored value can come up."""
        if self.kind == "categorical":
            return value in [stored(choice) for choice in self.choices]
        if isinstance(value, str) or not self.low <= value <= self.high:
            return False
        return self.step is None or _is_whole((value - self.low) / self.step)

    def values(self) -> Iterator[Value]:
        """All stored values, for a grid; refused for a range without steps."""
        if self.kind == "categorical":
            yield from (stored(choice) for choice in self.choices)
            return
        step = self.step or (1 if self.kind == "int" and not self.log else None)
        if step is None:
            raise ConfigError(f"{self.name}: a grid needs a step or a list of choices; give one, or another --sampler")
        for k in range(round((self.high - self.low) / step) + 1):
            value = self.low + k * step
            # Without the noise of the sum, or the paper's 0.9 would stand beside another 0.9
            yield int(value) if self.kind == "int" else float(f"{value:.12g}")


def stored(choice: Any) -> Value:
    """A choice as optuna stores it."""
    return json.dumps(list(choice)) if isinstance(choice, tuple) else cast(Value, choice)


def read_dimension(name: str, content: Any, earlier: Mapping[str, Dimension], origin: str) -> Dimension:
    """One line of the YAML file; what is wrong with it is an error that names `origin`, the line and the remedy."""
    where = f"{origin}: {name}"
    said = [kind for kind in KINDS if isinstance(content, dict) and kind in content]
    if len(said) != 1:
        raise ConfigError(f"{where}: say how it is searched, with one of float, int, categorical: [...]")
    (kind,) = said
    unknown = content.keys() - {kind, "when"} - ({"log", "step"} if kind != "categorical" else set())
    if unknown:
        raise ConfigError(f"{where}: `{min(map(str, unknown))}` means nothing beside {kind}; leave it out")
    values = content[kind]
    if not isinstance(values, list) or not values:
        raise ConfigError(f"{where}: {kind} is {values!r}, but should be a list, such as [low, high] or the choices")
    when = _read_when(content.get("when", {}), earlier, where)
    if kind == "categorical":
        return Dimension(name, kind, choices=_read_choices(name, values, where), when=when)
    return _read_range(name, kind, content, where, when)


def _read_choices(name: str, values: Sequence[Any], where: str) -> tuple[Any, ...]:
    choices = tuple(_checked(name, value, where) for value in values)
    if len(set(choices)) < len(choices):
        raise ConfigError(f"{where}: a choice is there twice; name each once")
    return choices


def _read_range(
    name: str, kind: str, content: Mapping[str, Any], where: str, when: Mapping[str, tuple[Value, ...]]
) -> Dimension:
    accepted = _kinds(name)
    if (float if kind == "float" else int) not in accepted:
        better = "int" if int in accepted else "float" if float in accepted else "categorical"
        lists = f", or {LAYERS} and {WIDTH}" if name == "head_hidden" else ""
        raise ConfigError(f"{where}: cannot be searched as {kind}; use {better}{lists}")
    if len(content[kind]) != 2:
        raise ConfigError(f"{where}: {kind} should be [low, high], but has {len(content[kind])} values")
    low, high = (_checked(name, value, where) for value in content[kind])
    if low >= high:
        raise ConfigError(f"{where}: the range from {low:g} to {high:g} is empty; give the smaller number first")
    log, step = content.get("log", False), content.get("step")
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log is {log!r}, but should be true or false")
    if log and low <= 0:
        raise ConfigError(f"{where}: a log scale cannot begin at {low:g}; begin above 0, or leave log out")
    if step is not None:
        _check_step(step, low, high, kind, log, where)
    return Dimension(name, kind, low, high, step, log, when=when)


def _check_step(step: Any, low: float, high: float, kind: str, log: bool, where: str) -> None:
    if log:
        raise ConfigError(f"{where}: a log scale has no steps; leave out log or step")
    number = isinstance(step, int) or (kind == "float" and isinstance(step, float))
    if isinstance(step, bool) or not number or not 0 < step < math.inf:
        raise ConfigError(f"{where}: step is {step!r}, but should be a number above 0, whole for int")
    if not _is_whole((high - low) / step):
        raise ConfigError(f"{where}: steps of {step:g} do not lead from {low:g} to {high:g}; change one of the three")


def _read_when(content: Any, earlier: Mapping[str, Dimension], where: str) -> dict[str, tuple[Value, ...]]:
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: when is {content!r}, but should be {{other: [values]}}")
    when = {}
    for other, values in content.items():
        if other not in earlier:
            raise ConfigError(f"{where}: when names `{other}`, which does not stand above it; put it there")
        listed = values if isinstance(values, list) else [values]
        possible = tuple(stored(_checked(other, value, f"{where}, when")) for value in listed)
        for value in possible:
            if not earlier[other].holds(value):
                raise ConfigError(f"{where}: when wants {other} to be {value!r}, which never comes up there")
        when[other] = possible
    return when


def _kinds(name: str) -> tuple[Any, ...]:
    return (int,) if name in (LAYERS, WIDTH) else kinds(name)


def _checked(name: str, value: Any, where: str) -> Any:
    """The value in its field's type, checked as the configuration's are."""
    if name not in (LAYERS, WIDTH):
        return checked(name, value, where)
    least, most = (0, _MOST_LAYERS) if name == LAYERS else (1, math.inf)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bound = f"from {least} to {most}" if name == LAYERS else f"from {least} on"
        raise ConfigError(f"{where} is {value!r}, but should be a whole number {bound}")
    return value


def _is_whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) < 1e-9 * max(1.0, abs(ratio))

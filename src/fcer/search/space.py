"""What a study searches: the dimensions of a YAML file, and settings of the head from a trial's values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import optuna

from fcer.config.bounded import read_yaml
from fcer.config.fields import fields
from fcer.config.resolve import nearest
from fcer.config.settings import Config
from fcer.errors import ConfigError
from fcer.search.dimension import LAYERS, WIDTH, Dimension, Value, read_dimension, stored

__all__ = ["DEFAULT", "Space", "read_space"]

_PREFIX = "head_"
_EXAMPLE = "name a space such as experiments/search_head.yaml"

DEFAULT: Mapping[str, Any] = MappingProxyType(
    {
        "head_lr": {"float": [0.0001, 1.0], "log": True},
        "head_momentum": {"float": [0.0, 0.99]},
        "head_weight_decay": {"float": [0.000001, 0.01], "log": True},
        "head_batch_size": {"int": [2, 16], "log": True},
        "head_power": {"float": [0.0, 2.0]},
        "head_epochs": {"int": [20, 100], "step": 20},
        LAYERS: {"int": [0, 2]},
        WIDTH: {"int": [4, 64], "log": True, "when": {LAYERS: [1, 2]}},
        "head_loss": {"categorical": ["rmsle", "mse", "bce"]},
        "head_logit": {"categorical": [False, True]},
        "head_target": {"categorical": ["std", "mutual_information", "entropy"]},
    }
)
"""What is searched where no file is named, as in experiments/search_head.yaml."""


@dataclass(frozen=True)
class Space:
    """All dimensions, in the order in which a trial meets them."""

    dimensions: tuple[Dimension, ...]

    def suggest(self, trial: optuna.Trial) -> dict[str, Value]:
        """The values of a trial, as optuna stores them."""
        params: dict[str, Value] = {}
        for dimension in self.dimensions:
            if dimension.active(params):
                params[dimension.name] = dimension.suggest(trial)
        return params

    def settings(self, params: Mapping[str, Value]) -> dict[str, Any]:
        """A trial's values as settings of the configuration; what it does not search is not there."""
        found = {d.name: d.setting(params[d.name]) for d in self.dimensions if d.name in params}
        if LAYERS in found:
            layers, width = found.pop(LAYERS), found.pop(WIDTH, 0)
            found["head_hidden"] = (width,) * layers
        return found

    def paper(self) -> dict[str, Value]:
        """The paper's setting, which is the configuration's default, as values of a trial."""
        params: dict[str, Value] = {}
        for dimension in self.dimensions:
            if dimension.active(params):
                params[dimension.name] = _paper_value(dimension)
        return params

    def grid(self) -> Iterator[dict[str, Value]]:
        """Every combination, each once; the paper's setting first."""
        paper = self.paper()
        yield paper
        yield from (params for params in self._combinations({}, 0) if params != paper)

    def text(self) -> str:
        """One line that is the same for the same space."""
        return json.dumps([asdict(dimension) for dimension in self.dimensions])

    def _combinations(self, params: dict[str, Value], k: int) -> Iterator[dict[str, Value]]:
        if k == len(self.dimensions):
            yield params
            return
        dimension = self.dimensions[k]
        if not dimension.active(params):
            yield from self._combinations(params, k + 1)
            return
        for value in dimension.values():
            yield from self._combinations({**params, dimension.name: value}, k + 1)


def read_space(file: Path | None) -> Space:
    """The space of a YAML file, or the default one; anything wrong in it is a ConfigError."""
    content, origin = (DEFAULT, "the default space") if file is None else (read_yaml(file, _EXAMPLE), str(file))
    if not content:
        raise ConfigError(f"{origin}: names nothing to search; see experiments/search_head.yaml")
    dimensions: dict[str, Dimension] = {}
    for name, line in content.items():
        _check_name(name, origin)
        dimensions[name] = read_dimension(name, line, dimensions, origin)
    _check_hidden(dimensions, origin)
    space = Space(tuple(dimensions.values()))
    for name, value in space.paper().items():
        if not dimensions[name].holds(value):
            raise ConfigError(
                f"{origin}: {name}: every study begins with the paper's setting, and its {value} is not among these; "
                "add it"
            )
    return space


def _check_name(name: Any, origin: str) -> None:
    known = [LAYERS, WIDTH, *(key for key in fields() if key.startswith(_PREFIX))]
    if name not in known:
        hint = nearest(str(name), known, "`") or f"; a study searches {', '.join(known)}"
        raise ConfigError(f"{origin}: `{name}` is no setting of the head{hint}")


def _check_hidden(dimensions: Mapping[str, Dimension], origin: str) -> None:
    if (LAYERS in dimensions) != (WIDTH in dimensions):
        missing = WIDTH if LAYERS in dimensions else LAYERS
        raise ConfigError(f"{origin}: {missing} is missing; {LAYERS} and {WIDTH} are searched together")
    if LAYERS not in dimensions:
        return
    if "head_hidden" in dimensions:
        raise ConfigError(f"{origin}: head_hidden stands beside {LAYERS}; leave one of them out")
    deep = [value for value in dimensions[LAYERS].values() if value]
    when = dimensions[WIDTH].when
    if when.keys() != {LAYERS} or set(when[LAYERS]) != set(deep):
        listed = ", ".join(map(str, deep))
        raise ConfigError(f"{origin}: {WIDTH}: add when: {{{LAYERS}: [{listed}]}}: no layers have no width")


def _paper_value(dimension: Dimension) -> Value:
    hidden = Config().head_hidden
    if dimension.name == LAYERS:
        return len(hidden)
    if dimension.name == WIDTH:
        return hidden[0]
    return stored(fields()[dimension.name].default)

"""YAML and JSON from anywhere, bounded before anything is built: a few hundred bytes can stand for gigabytes."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fcer.errors import ConfigError

__all__ = ["parse_json", "read_yaml"]

_DEEPEST = 32
"""Lists and objects inside one another."""
_LARGEST_YAML = 1 << 20
"""Bytes of a file."""
_MOST_NODES = 50_000
"""Values in a YAML file, those that an alias repeats counted each time."""
_LONGEST_PLAIN = 2000
"""Characters of a YAML value without quotes, which may be a number that takes hours to print."""

_JSON_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def parse_json(text: str | bytes, *, largest: int | None = None) -> Any:
    """What a JSON text says.

    Parameters
    ----------
    text:
        Of any origin; bytes are UTF-8.
    largest:
        Characters that it may have; none: any number.

    Raises
    ------
    ValueError
        Where it is no JSON, too long, or nested too deeply to be worked with.
    """
    text = text.decode() if isinstance(text, bytes) else text
    if largest is not None and len(text) > largest:
        raise ValueError(f"{len(text)} characters of JSON; at most {largest} are read")
    depth = 0
    for part in _JSON_PARTS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(part[0], 0)
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
    return json.loads(text)


def read_yaml(file: Path, missing: str = "check the path") -> dict[Any, Any]:
    """The mapping that a YAML file holds, empty where the file is.

    Parameters
    ----------
    file:
        Of any origin.
    missing:
        What to do where there is no such file, as the end of a sentence.

    Raises
    ------
    ConfigError
        With the file and, where that is known, the line.
    """
    import yaml

    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_YAML + 1)
        if len(content) > _LARGEST_YAML:
            raise ConfigError(f"{file}: larger than {_LARGEST_YAML >> 20} MiB, which is no file of settings")
        text = content.decode()
        _check_extent(text)
        found = yaml.load(text, _loader())
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file; {missing}") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ConfigError(f"{file}{line}: not valid YAML ({problem})") from None
    except (ValueError, KeyError, AttributeError, IndexError, TypeError, OverflowError) as error:
        # PyYAML's answers to values that are none of their type: 2020-13-45, !!bool maybe, !!timestamp soon
        raise ConfigError(f"{file}: a value cannot be read ({error})") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: should hold `key: value` lines, but holds {type(found).__name__}")
    return found


class _Extent(NamedTuple):
    """How large a value is once its aliases are written out."""

    nodes: int
    depth: int


class _Ruler:
    """Measures what a YAML text stands for from its events alone, so that nothing of it is built."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, _Extent] = {}
        self._nodes = 0

    def depth(self, event: Any, around: int = 0) -> int:
        """How deep the value goes that begins with `event` and has so many others around it; refused if too large."""
        import yaml

        before, below = self._nodes, 0
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent):
            known = self._anchors.get(str(event.anchor))
            if known is None:
                raise _problem(event, f"`*{event.anchor}` stands for nothing above it")
            self._nodes, below = before + known.nodes, known.depth
        elif isinstance(event, yaml.CollectionStartEvent):
            self._anchors.pop(str(event.anchor), None)
            self._check(event, around + 1)
            items = itertools.takewhile(lambda item: not isinstance(item, yaml.CollectionEndEvent), self._events)
            below = 1 + max((self.depth(item, around + 1) for item in items), default=0)
        elif event.style is None and len(event.value) > _LONGEST_PLAIN:
            raise _problem(event, f"a value of {len(event.value)} characters")
        self._check(event, around + below)
        if event.anchor and not isinstance(event, yaml.AliasEvent):
            self._anchors[event.anchor] = _Extent(self._nodes - before, below)
        return below

    def _check(self, event: Any, depth: int) -> None:
        if depth > _DEEPEST:
            raise _problem(event, f"nested more than {_DEEPEST} deep")
        if self._nodes > _MOST_NODES:
            raise _problem(event, f"more than {_MOST_NODES} values once its aliases are written out")


def _check_extent(text: str) -> None:
    import yaml

    events = yaml.parse(text, yaml.SafeLoader)
    ruler = _Ruler(events)
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            ruler.depth(event)


def _problem(event: Any, said: str) -> Exception:
    import yaml

    return yaml.MarkedYAMLError(problem=said, problem_mark=event.start_mark)


def _loader() -> Any:
    """PyYAML's safe loader, but a key that is there twice is an error, not a silent loss of the first."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, str | int | float | bool | None):
                    raise yaml.MarkedYAMLError(problem="a key is no name", problem_mark=key_node.start_mark)
                if key in seen:
                    raise yaml.MarkedYAMLError(problem=f"`{key}` is there twice", problem_mark=key_node.start_mark)
                seen.add(key)
            return super().construct_mapping(node, deep)

    return Loader

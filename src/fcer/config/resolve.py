"""Where values come from: the defaults, then a YAML file, then flags; each checked, and its origin kept."""

import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fcer.config.settings import DEMO, Config, fields, in_words, kinds, parts
from fcer.errors import ConfigError
from fcer.runtime.secrets import masked

__all__ = ["Resolved", "checked", "nearest", "resolve", "to_yaml", "yaml_loader"]


class Resolved(NamedTuple):
    """A configuration and, for each key, where its value came from."""

    config: Config
    origins: dict[str, str]


def resolve(
    file: Path | None = None, flags: Mapping[str, str | Sequence[str]] | None = None, *, demo: bool = False
) -> Resolved:
    """Defaults, overridden by the YAML `file`, overridden by `flags` (texts, as typed).

    With `demo`, the demo's settings stand in for a file where neither that nor data is named.
    """
    flags = flags or {}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(fields(), "default")
    if demo and file is None and not {"data", "source", "predictions", "results", "runs", "experiment"} & flags.keys():
        values.update(DEMO)
        origins.update(dict.fromkeys(DEMO, "demo"))
    if file is not None:
        for key, value in _read_yaml(file).items():
            values[key] = checked(key, value, str(file))
            origins[key] = str(file)
    for key, text in flags.items():
        flag = "--" + key.replace("_", "-")
        values[key] = checked(key, _from_text(key, text), flag)
        origins[key] = flag
    return Resolved(Config(**values), origins)


def to_yaml(resolved: Resolved) -> str:
    """The configuration as YAML that can be read back, each line with its value's origin."""
    import yaml

    lines = []
    for key, origin in resolved.origins.items():
        value = getattr(resolved.config, key)
        plain = [_plain(item) for item in value] if isinstance(value, tuple) else _plain(value)
        text = yaml.safe_dump(plain, default_flow_style=True).removesuffix("\n").removesuffix("\n...")
        lines.append(f"{key}: {text}".ljust(40) + f"  # {origin}")
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    return str(value) if isinstance(value, Path) else value


def nearest(word: str, known: Iterable[str], quote: str = "") -> str:
    """The known word that was perhaps meant, as the end of a sentence."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def _read_yaml(file: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.load(file.read_text(encoding="utf-8"), yaml_loader())
    except FileNotFoundError:
        near = ", ".join(sorted(str(p) for p in Path("experiments").glob("*.yaml")))
        raise ConfigError(f"{file}: no such file" + (f"; there are {near}" if near else "")) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error})") from None
    except ValueError as error:
        raise ConfigError(f"{file}: a value cannot be read ({error})") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise ConfigError(f"{file}{line}: not valid YAML ({getattr(error, 'problem', error)})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: should hold `key: value` lines, but holds {type(content).__name__}")
    for key in content:
        if key not in fields():
            hint = nearest(str(key), fields(), "`")
            raise ConfigError(f"{file}: unknown key `{key}`{hint or '; `fcer config show` lists all'}")
    return content


def yaml_loader() -> Any:
    """PyYAML's safe loader, but a key that is there twice is an error, not a silent loss of the first."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for k, key in enumerate(keys):
                if key in keys[:k]:
                    raise yaml.MarkedYAMLError(
                        problem=f"`{key}` is there twice", problem_mark=node.value[k][0].start_mark
                    )
            return super().construct_mapping(node, deep)

    return Loader


def _from_text(key: str, text: str | Sequence[str]) -> Any:
    """What a flag's text stands for, in the way YAML would have given it."""
    accepted = kinds(key)
    words = [text] if isinstance(text, str) else list(text)
    many = any(typing.get_origin(kind) is tuple for kind in accepted)
    if words == ["none"] and (many or types.NoneType in accepted):
        return None if types.NoneType in accepted else []
    if tuple[Path, ...] in accepted:
        # MLflow hands several files over as one word; a file whose name has spaces is one word too
        return [part for word in words for part in ([word] if Path(word).exists() else word.split())]
    if many:
        # `--years 2018 2019`, `--years 2018,2019` and MLflow's one quoted word all mean the same
        parts = [part for word in words for part in word.replace(",", " ").split()]
        if tuple[str, ...] in accepted:
            return parts  # the id of a run may look like a number
        if str not in accepted or len(parts) > 1 or all(isinstance(_scalar(p), int) for p in parts):
            return [_scalar(part) for part in parts]
        words = parts
    word = " ".join(words)
    numbers = int in accepted or float in accepted
    return word if (Path in accepted or str in accepted) and not numbers else _scalar(word)


def _scalar(text: str) -> Any:
    """A number or a truth value where the text is one, else the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def checked(key: str, value: Any, origin: str) -> Any:
    """The value in its field's type, or an error that names origin, key, value and remedy."""
    converted = _first_fit(value, kinds(key))
    if converted is _WRONG:
        hint = "; write 0.001 for 1e-3" if isinstance(value, str) and isinstance(_scalar(value), float) else ""
        raise ConfigError(f"{origin}: {key} is {value!r}, but should be {in_words(key)}{hint}")
    meta = fields()[key].metadata
    if meta["choices"] and converted not in meta["choices"]:
        hint = nearest(str(converted), meta["choices"])
        raise ConfigError(f"{origin}: {key} is {converted!r}, but should be {in_words(key)}{hint}")
    for number in converted if isinstance(converted, tuple) else (converted,):
        if isinstance(number, int | float) and not meta["low"] <= number <= meta["high"]:
            bound = f"at least {meta['low']}" if number < meta["low"] else f"at most {meta['high']}"
            raise ConfigError(f"{origin}: {key} is {number}, but should be {bound}")
    wrong = meta["check"](converted) if meta["check"] and converted is not None else None
    if wrong:
        raise ConfigError(f"{origin}: {key} is {value!r}: {wrong}")
    return converted


_WRONG = object()


def _first_fit(value: Any, accepted: Sequence[Any]) -> Any:
    """`value` as the first of the types that takes it, else _WRONG."""
    return next((fit for kind in accepted if (fit := _converted(value, kind)) is not _WRONG), _WRONG)


def _converted(value: Any, kind: Any) -> Any:
    """`value` as `kind` without guessing (1 is no truth value, "4" no number), else _WRONG."""
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            return _WRONG
        items = tuple(_first_fit(item, parts(typing.get_args(kind)[0])) for item in value)
        return _WRONG if any(item is _WRONG for item in items) else items
    if kind is types.NoneType:
        return None if value is None else _WRONG
    if kind is Path:
        return Path(value).expanduser() if isinstance(value, str) and value else _WRONG
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else _WRONG
    if kind is float and isinstance(value, int | float):
        return float(value) if math.isfinite(value) else _WRONG
    return value if isinstance(value, kind) and value != "" else _WRONG

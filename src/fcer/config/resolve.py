"""Where values come from: the defaults, then a YAML file, then flags; each checked, and its origin kept."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fcer.config.bounded import read_yaml
from fcer.config.checks import writable
from fcer.config.conversion import converted, from_text, hints, in_words, scalar, shown
from fcer.config.demo import DEMO, NAMES_DATA
from fcer.config.fields import fields, option_of
from fcer.config.settings import Config
from fcer.errors import ConfigError
from fcer.runtime.secrets import masked

__all__ = ["Resolved", "checked", "configure", "nearest", "resolve", "to_yaml"]


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
    if demo and file is None and not NAMES_DATA & flags.keys():
        values.update(DEMO)
        origins.update(dict.fromkeys(DEMO, "demo"))
    if file is not None:
        for key, value in _settings_in(file).items():
            values[key] = checked(key, value, str(file))
            origins[key] = str(file)
    for key, text in flags.items():
        flag = "--" + key.replace("_", "-")
        values[key] = checked(key, from_text(text, hints(Config)[key]), flag)
        origins[key] = flag
    return Resolved(Config(**values), origins)


def to_yaml(resolved: Resolved) -> str:
    """The configuration as YAML that can be read back, each line with its value's origin."""
    import yaml

    lines = []
    for key, origin in resolved.origins.items():
        value = getattr(resolved.config, key)
        plain = [_plain(item) for item in value] if isinstance(value, tuple) else _plain(value)
        text = yaml.safe_dump(plain, default_flow_style=True, width=math.inf).removesuffix("\n").removesuffix("\n...")
        lines.append(f"{key}: {text}".ljust(40) + f"  # {origin}")
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    return masked(str(value)) if isinstance(value, str | Path) else value


def nearest(word: str, known: Iterable[str], quote: str = "", prefix: str = "") -> str:
    """The known word that was perhaps meant, as the end of a sentence."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"; did you mean {quote}{prefix}{close[0]}{quote}?" if close else ""


def _settings_in(file: Path) -> dict[str, Any]:
    near = ", ".join(sorted(str(path) for path in Path("experiments").glob("*.yaml")))
    content = read_yaml(file, f"there are {near}" if near else "check the path")
    for key in content:
        if key not in fields():
            hint = nearest(str(key), fields(), "`")
            raise ConfigError(f"{file}: unknown key `{key}`{hint or '; `fcer config show` lists all'}")
    return content


def checked(key: str, value: Any, origin: str) -> Any:
    """The value in its setting's type, or an error that names origin, key, value and remedy."""
    option, hint = option_of(key), hints(Config)[key]
    choices = option.choices if not option.choices or value in option.choices else (*option.choices, *option.brought)
    expected = "one of " + ", ".join(choices) if choices else in_words(hint)
    try:
        fit = converted(value, hint)
    except ValueError:
        remedy = "; write 0.001 for 1e-3" if isinstance(value, str) and isinstance(scalar(value), float) else ""
        raise ConfigError(f"{origin}: {key} is {shown(value)}, but should be {expected}{remedy}") from None
    items = fit if isinstance(fit, tuple) else (fit,)
    if "" in items or (choices and fit not in choices):
        near = nearest(str(fit), choices)
        raise ConfigError(f"{origin}: {key} is {shown(value)}, but should be {expected}{near}")
    for number in items:
        if isinstance(number, int | float) and not option.low <= number <= option.high:
            bound = f"at least {option.low}" if number < option.low else f"at most {option.high}"
            raise ConfigError(f"{origin}: {key} is {shown(number)}, but should be {bound}")
    wrong = next((said for item in items if isinstance(item, str | Path) and (said := writable(item))), None)
    wrong = wrong or (option.check(fit) if option.check and fit is not None else None)
    if wrong:
        raise ConfigError(f"{origin}: {key} is {shown(value)}: {masked(wrong)}")
    return fit


def configure(file: Path | str | None = None, **settings: Any) -> Resolved:
    """A configuration from Python: the defaults, overridden by a YAML `file`, overridden by `settings`.

    Parameters
    ----------
    file:
        experiments/NAME.yaml.
    settings:
        By the names of `Config`; each is checked as a value from a file would be.

    Examples
    --------
    >>> configure(year=2020, width=0.125).config.width
    0.125
    """
    resolved = resolve(None if file is None else Path(file))
    unknown = next((key for key in settings if key not in fields()), None)
    if unknown is not None:
        raise ConfigError(f"configure: unknown key `{unknown}`{nearest(unknown, fields(), '`')}")
    values = {key: checked(key, value, "configure") for key, value in settings.items()}
    origins = {**resolved.origins, **dict.fromkeys(values, "configure")}
    return Resolved(replace(resolved.config, **values), origins)

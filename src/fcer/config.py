"""Every setting of an experiment: its type, its default, what it means, and where its value came from.

One flat set of names serves everywhere: `select_by` in YAML is `--select-by` on the command line and
`-P select_by=...` for MLflow. Values come from the defaults here, then from a YAML file, then from flags.
"""

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fcer.errors import ConfigError

__all__ = ["Config", "Resolved", "fields", "help_text", "kinds", "nearest", "resolve", "to_yaml"]


def _option(
    default: Any,
    meaning: str,
    *,
    choices: Sequence[str] = (),
    low: float = -math.inf,
    high: float = math.inf,
    check: Callable[[Any], str | None] | None = None,
) -> Any:
    """A field with its meaning and the values it may take; `check` returns what is wrong, or None."""
    metadata = {"meaning": meaning, "choices": tuple(choices), "low": low, "high": high, "check": check}
    return field(default=default, metadata=metadata)


def _ordered(value: Sequence[int]) -> str | None:
    return None if len(value) == 2 and value[0] <= value[1] else "give two numbers, the smaller one first"


def _years(value: Sequence[int]) -> str | None:
    if not value:
        return "name at least one year"
    return None if len(set(value)) == len(value) else "name each year once"


def _crop(value: int) -> str | None:
    return (
        f"not a multiple of 32, which the backbones need; try {max(32, 32 * round(value / 32))}" if value % 32 else None
    )


def _features(value: str | Sequence[int]) -> str | None:
    if isinstance(value, str):
        return None if value in _FEATURE_SETS else f"use {', '.join(_FEATURE_SETS)} or a list of indices from 0 to 39"
    return None if value and len(set(value)) == len(value) else "name one index at least, and each once"


def _radius(value: float | str, words: Sequence[str]) -> str | None:
    metres = isinstance(value, str) and re.fullmatch(r"\d+(\.\d*)?(m|px)?", value)
    if isinstance(value, float) or metres or value in words:
        return None
    return f"give px from 0 on, metres such as 1500m, or {words[0]}"


def _anchor(value: float | str) -> str | None:
    return _radius(value, ["auto"])


def _radii(value: Sequence[float | str]) -> str | None:
    return next((wrong for radius in value if (wrong := _radius(radius, ["full"]))), None)


_FEATURE_SETS = ("vegetation", "multi", "all")


def _year_or_all(value: int | str) -> str | None:
    return None if isinstance(value, int) or value == "all" else "give a year, or all"


@dataclass(frozen=True)
class Config:
    """The settings of one experiment. A field's meaning stands in its `meaning`, which `--help` prints."""

    # Where things are
    data: Path | None = _option(
        None, "dataset folder, YEAR/fire_X.hdf5 or YEAR/fire_X/DATE.tif; none: synthetic fires are made"
    )
    source: Path | None = _option(
        None, "folder of the GeoTIFF release, YEAR/fire_X/DATE.tif; none: synthetic GeoTIFFs are made"
    )
    out: Path | None = _option(None, "folder for the results; none: a folder of its own below `work`")
    work: Path = _option(Path("work"), "folder for everything that a command makes and was not told where to put")

    checkpoints: Path | None = _option(
        None, "folder of members: released (foldN_testAP0.xxx.pth) or our own; none: members are trained"
    )

    # Which experiment
    year: int | str = _option(2021, "test year, or all", check=_year_or_all)
    fold: int | None = _option(None, "one fold instead of the three fair ones of the test year", low=0, high=11)
    arch: str = _option("utae_t5", "architecture of the backbone", choices=("utae_t5", "unet_t5", "unet_t1"))
    width: float = _option(1.0, "factor on the backbone's channels, for small ones", low=0.0625, high=1)
    normalization: str = _option(
        "member",
        "statistics that inputs are standardised with: each member's own, or the backbone's as in the paper",
        choices=("member", "backbone"),
    )
    select_by: str = _option(
        "val_ap",
        "AP whose median chooses the student's backbone: on validation, or in released file names as in the paper",
        choices=("val_ap", "file_ap"),
    )

    # Training of members
    member_epochs: int = _option(50, "epochs of training at most", low=1)
    member_patience: int = _option(10, "epochs without better validation AP before training stops", low=1)
    member_lr: float = _option(0.001, "learning rate of AdamW", low=1e-9)
    member_weight_decay: float = _option(0.01, "weight decay of AdamW", low=0)
    member_batch_size: int = _option(16, "samples in a batch", low=1)
    member_schedule: str = _option("cosine", "how the learning rate falls", choices=("cosine", "plateau"))
    pos_weight: float = _option(5.0, "weight of fire pixels in the loss", low=1e-9)
    clip_norm: float = _option(1.0, "largest norm of the gradient", low=1e-9)

    # What is read from a fire
    features: str | tuple[int, ...] = _option(
        "vegetation",
        "channels a model sees: vegetation, multi, all, or a list of indices into the 40 preprocessed channels",
        low=0,
        high=39,
        check=_features,
    )
    crop: int = _option(128, "side of the central crop in px, a multiple of 32", low=32, check=_crop)

    # Evaluation
    predictions: tuple[Path, ...] = _option(
        (), "predicted-maps files of any model, one for each year: predictions_YEAR.npz or .hdf5"
    )
    reference: str | None = _option(
        None, "method whose errors all uncertainties are to find; none: student where there is one, else the first"
    )
    anchor: float | str = _option(
        4.0,
        "radius of tests and summaries: px, metres (1500m), or auto (the ensemble's mean ASD)",
        low=0,
        check=_anchor,
    )
    radii: tuple[float | str, ...] = _option(
        tuple(map(float, range(11))),
        "radii of the sweep: px or metres (1500m); the full image is added",
        low=0,
        check=_radii,
    )
    bootstrap: int = _option(1000, "draws of fires behind confidence intervals; 0: no intervals", low=0)

    # Synthetic fires
    years: tuple[int, ...] = _option(
        (2018, 2019, 2020, 2021), "years to make fires for", low=1000, high=9999, check=_years
    )
    fires_per_year: int = _option(6, "synthetic fires of each year", low=1)
    image_size: tuple[int, ...] = _option(
        (136, 176), "smallest and largest side of a synthetic image in px", low=32, high=10_000, check=_ordered
    )
    fire_days: tuple[int, ...] = _option(
        (8, 12), "shortest and longest synthetic fire in days", low=2, high=200, check=_ordered
    )
    geotiff: bool = _option(False, "write the GeoTIFF layout beside HDF5 (needs rasterio)")

    # How the work is done
    seed: int = _option(0, "seed of everything random: same configuration and seed, same numbers", low=0)
    device: str = _option("auto", "where backbones are trained", choices=("auto", "cpu", "cuda"))
    workers: int = _option(0, "processes that work side by side; 0: one for each core", low=0)


DEMO: Mapping[str, Any] = {
    "fires_per_year": 8,
    "image_size": (80, 112),
    "fire_days": (9, 13),
    "crop": 64,
    "width": 0.125,
    "member_epochs": 12,
    "member_patience": 6,
    "member_lr": 0.005,
    "member_batch_size": 4,
    "pos_weight": 10.0,
}
"""Settings for two cores and a few minutes, as in experiments/demo.yaml: a study that names neither data nor a
configuration is this one."""


class Resolved(NamedTuple):
    """A configuration and, for each key, where its value came from."""

    config: Config
    origins: dict[str, str]


def fields() -> dict[str, dataclasses.Field[Any]]:
    """The fields of Config by name."""
    return {f.name: f for f in dataclasses.fields(Config)}


def resolve(
    file: Path | None = None, flags: Mapping[str, str | Sequence[str]] | None = None, *, demo: bool = False
) -> Resolved:
    """Defaults, overridden by the YAML `file`, overridden by `flags` (texts, as typed).

    With `demo`, the demo's settings stand in for a file where neither that nor data is named.
    """
    flags = flags or {}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(fields(), "default")
    if demo and file is None and not {"data", "source", "predictions"} & flags.keys():
        values.update(DEMO)
        origins.update(dict.fromkeys(DEMO, "demo"))
    if file is not None:
        for key, value in _read_yaml(file).items():
            values[key] = _checked(key, value, str(file))
            origins[key] = str(file)
    for key, text in flags.items():
        flag = "--" + key.replace("_", "-")
        values[key] = _checked(key, _from_text(key, text), flag)
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
    return str(value) if isinstance(value, Path) else value


def help_text(key: str) -> str:
    """What a field means and its default, for `--help`."""
    f = fields()[key]
    items = f.default if isinstance(f.default, tuple) else (f.default,)
    text = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items) or "none"
    if f.default is None or isinstance(f.default, bool):
        text = text.lower()  # as one would type it
    return f"{f.metadata['meaning']} (default: {text})"


def _describe(key: str) -> str:
    """A field's type in words."""
    f = fields()[key]
    if f.metadata["choices"]:
        return "one of " + ", ".join(f.metadata["choices"])
    return _in_words(kinds(key))


def _in_words(accepted: Sequence[Any]) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a name",
        Path: "a path",
        types.NoneType: "none",
    }
    return " or ".join(
        names[kind] if kind in names else "a list, each item " + _in_words(_parts(typing.get_args(kind)[0]))
        for kind in accepted
    )


def _read_yaml(file: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.load(file.read_text(encoding="utf-8"), _loader())
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


def _loader() -> Any:
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


def nearest(word: str, known: Iterable[str], quote: str = "") -> str:
    """The known word that was perhaps meant, as the end of a sentence."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def kinds(key: str) -> tuple[Any, ...]:
    """The types that a field accepts, a union taken apart."""
    return _parts(typing.get_type_hints(Config)[key])


def _parts(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def _from_text(key: str, text: str | Sequence[str]) -> Any:
    """What a flag's text stands for, in the way YAML would have given it."""
    accepted = kinds(key)
    words = [text] if isinstance(text, str) else list(text)
    if types.NoneType in accepted and words == ["none"]:
        return None
    if tuple[Path, ...] in accepted:
        # MLflow hands several files over as one word; a file whose name has spaces is one word too
        return [part for word in words for part in ([word] if Path(word).exists() else word.split())]
    if any(typing.get_origin(kind) is tuple for kind in accepted):
        # `--years 2018 2019`, `--years 2018,2019` and MLflow's one quoted word all mean the same
        parts = [part for word in words for part in word.replace(",", " ").split()]
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


def _checked(key: str, value: Any, origin: str) -> Any:
    """The value in its field's type, or an error that names origin, key, value and remedy."""
    converted = _first_fit(value, kinds(key))
    if converted is _WRONG:
        hint = "; write 0.001 for 1e-3" if isinstance(value, str) and isinstance(_scalar(value), float) else ""
        raise ConfigError(f"{origin}: {key} is {value!r}, but should be {_describe(key)}{hint}")
    meta = fields()[key].metadata
    if meta["choices"] and converted not in meta["choices"]:
        hint = nearest(str(converted), meta["choices"])
        raise ConfigError(f"{origin}: {key} is {converted!r}, but should be {_describe(key)}{hint}")
    for number in converted if isinstance(converted, tuple) else (converted,):
        if isinstance(number, int | float) and not meta["low"] <= number <= meta["high"]:
            bound = f"at least {meta['low']}" if number < meta["low"] else f"at most {meta['high']}"
            raise ConfigError(f"{origin}: {key} is {number}, but should be {bound}")
    wrong = meta["check"] and meta["check"](converted)
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
        items = tuple(_first_fit(item, _parts(typing.get_args(kind)[0])) for item in value)
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

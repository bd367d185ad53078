"""Results folders at the door: whole, of one evaluation, and what their settings say they are.

`evaluation.json` is written last and holds a digest of every file beside it, so that a file that was cut, edited
or copied from another evaluation is noticed. What fits its digest is still checked for columns, types, years and
methods: a folder can come from anywhere.
"""

import dataclasses
import hashlib
import json
import math
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pandas.api.types import is_numeric_dtype

from fcer.errors import PredictionsError
from fcer.runtime.csv_cells import unguarded

__all__ = ["TEXT", "listed_files", "read_settings", "read_table", "read_tables", "read_tests", "with_digests"]

TEXT = (
    *("fire_id", "date", "method", "scope", "a", "b", "metric", "unit", "binning", "anchor"),
    *("family", "fitted", "calibration", "kind"),
)
"""Columns of words; identifiers such as "007" are words, whatever they look like. All others hold numbers."""

_CURVE = (*("year", "method", "radius_px", "radius_m", "auroc", "auprc", "brier", "nll"), *("n_pixels", "n_errors"))
_PAIR = ("metric", "a", "b")
COLUMNS = {
    "sweep": (*_CURVE, "prevalence"),
    "anchor": (*_CURVE, "prevalence", "ece", "ece_mass"),
    "segmentation": ("year", "method", "ap", "precision", "recall", "asd_m", "fire_images", "missed"),
    "per_image": ("year", "index", "fire_id", "method", "auroc", "auprc", "n_pixels", "n_errors"),
    "intervals": ("scope", *_PAIR, "value", "ci_low", "ci_high"),
    "sensitivity": ("anchor", "radius_px", "radius_m", *_PAIR, "a_score", "b_score"),
    "reliability": ("year", "method", "binning", "lower", "upper", "n_pixels", "mean_prob", "fire_rate"),
    "own_errors": ("year", "method", "auroc", "auprc"),
    "risk_coverage": ("year", "method", "coverage", "risk"),
    "thresholds": ("year", "method", "threshold", "auroc", "auroc_within", "false_alarm_share", "n_errors"),
}
"""What each table has at least; a table that is not named here may have any columns."""

_MOST_JSON = 64 << 20
_MOST_IMAGES = 2**53
_DIGESTS = "files"
S = TypeVar("S")


def with_digests(settings: Mapping[str, Any], files: Sequence[Path]) -> dict[str, Any]:
    """The content of evaluation.json: the settings, and what the files beside it and the settings themselves are."""
    return {**settings, _DIGESTS: {path.name: _digest(path.read_bytes()) for path in files} | _own(settings)}


def read_settings(path: Path, files: Sequence[Path], kind: type[S]) -> S:
    """The settings in evaluation.json as the dataclass `kind`; a PredictionsError where a file is not of it."""
    stored = _read_json(path)
    if not isinstance(stored, dict) or not isinstance(digests := stored.pop(_DIGESTS, None), dict):
        raise _wrong(path, "does not say which files it belongs to")
    if _own(stored).items() - digests.items():
        raise _wrong(path, "was changed after it was written")
    for file in files:
        if not file.is_file():
            folder = file.parent
            raise PredictionsError(f"{folder}: {file.name} is missing; run fcer evaluate --out {folder} again")
        if digests.get(file.name) != _digest(file.read_bytes()):
            raise _wrong(file, "is damaged, or of another evaluation")
    try:
        settings = _typed(kind, stored)
        _check_settings(settings)
    except (TypeError, ValueError) as problem:
        raise _wrong(path, str(problem)) from None
    return settings


def listed_files(path: Path) -> set[str]:
    """The names of the files that evaluation.json says are of its evaluation; `read_settings` checks the rest."""
    stored = _read_json(path)
    listed = stored.get(_DIGESTS) if isinstance(stored, dict) else None
    return set(listed) if isinstance(listed, dict) else set()


def _read_json(path: Path) -> Any:
    """What a JSON file holds, unless it is too large or too deep to be one of ours."""
    try:
        if path.stat().st_size > _MOST_JSON:
            raise _wrong(path, "is too large for a file of results")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _wrong(path, "cannot be read as JSON") from None


def read_tables(directory: Path, settings: Any, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of results by name, each of the settings' years and methods and no others."""
    tables = {name: read_table(directory / f"{name}.csv") for name in names}
    _check_subjects(directory, settings, tables)
    return tables


def read_tests(path: Path, settings: Any, columns: Sequence[str]) -> pd.DataFrame:
    """The tests of per-image scores: a list of objects with these keys; words in TEXT, else numbers or null."""
    rows = _read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() == set(columns) for row in rows):
        raise _wrong(path, f"is not a list of tests with {', '.join(columns[:3])} and so on")
    for row in rows:
        for name, value in row.items():
            fits = isinstance(value, str) if name in TEXT else value is None or type(value) in (int, float)
            if not fits:
                raise _wrong(path, f"has {json.dumps(value)[:60]} for {name}")
    tests = pd.DataFrame(rows, columns=list(columns))
    # a column of nothing but null would be one of objects
    tests = tests.astype({name: "float64" for name in columns if name not in TEXT})
    counts = tests[["n", "n_nonzero"]]
    if not ((counts >= 0) & (counts < _MOST_IMAGES) & (counts % 1 == 0)).all(axis=None):
        raise _wrong(path, "counts what cannot be counted")
    tests = tests.astype(dict.fromkeys(counts, "int64"))
    _check_methods(path, settings, tests)
    return tests


def read_table(path: Path) -> pd.DataFrame:
    """A table of results with its columns: words in those of TEXT, numbers in all others."""
    try:
        # only an empty cell is missing: a fire may be called "NA"
        frame = pd.read_csv(path, dtype=dict.fromkeys(TEXT, "str"), keep_default_na=False, na_values=[""])
    except (OSError, ValueError, OverflowError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise _wrong(path, "cannot be read as a table") from None
    missing = [name for name in COLUMNS.get(path.stem, ()) if name not in frame]
    if missing:
        raise _wrong(path, f"has no column {missing[0]}")
    for name in frame:
        if name in TEXT:
            frame[name] = frame[name].fillna("").map(unguarded)
        elif not is_numeric_dtype(frame[name]) and not frame[name].isna().all():
            raise _wrong(path, f"has something else than numbers in the column {name}")
    return frame


def _check_subjects(directory: Path, settings: Any, tables: Mapping[str, pd.DataFrame]) -> None:
    """Every table speaks of the settings' years and methods, and of no others."""
    for name, table in tables.items():
        path = directory / f"{name}.csv"
        for column, known in (("year", settings.years), ("method", settings.methods)):
            if column in table:
                found = set(table[column].unique())
                if odd := found - set(known):
                    raise _wrong(path, f"is of the {column} {min(odd, key=str)}, which evaluation.json does not name")
        _check_methods(path, settings, table)
    for name in ("sweep", "segmentation"):
        table = tables[name]
        for year in settings.years:
            if not set(settings.methods) <= set(table.loc[table["year"] == year, "method"]):
                raise _wrong(directory / f"{name}.csv", f"does not hold every method in {year}")


def _check_methods(path: Path, settings: Any, table: pd.DataFrame) -> None:
    for column in ("a", "b"):
        odd = set(table[column].unique()) - {*settings.methods, ""} if column in table else set()
        if odd:
            raise _wrong(path, f"compares {min(odd)}, which is not one of the methods in evaluation.json")


def _own(settings: Mapping[str, Any]) -> dict[str, str]:
    return {"settings": _digest(json.dumps(settings, sort_keys=True).encode())}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _wrong(path: Path, problem: str) -> PredictionsError:
    return PredictionsError(f"{path}: {problem}; run fcer evaluate --out {path.parent} again")


def _typed(kind: type[S], stored: Mapping[str, Any]) -> S:
    """A dataclass of plain values and tuples of them from JSON; a ValueError names the field that does not fit."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    optional = {name for name, field in fields.items() if field.default is not dataclasses.MISSING}
    odd = sorted((stored.keys() - fields.keys()) | (fields.keys() - optional - stored.keys()))
    if odd:
        raise ValueError(f"{odd[0]} is missing or unknown")
    return kind(**{name: _value(name, hints[name], value) for name, value in stored.items()})


def _value(name: str, hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_value(name, typing.get_args(hint)[0], item) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not hint:
        raise ValueError(f"{name} is {json.dumps(value)[:60]}")
    return value


def _check_settings(settings: Any) -> None:
    years, methods = settings.years, settings.methods
    if not years or len(set(years)) < len(years) or not all(1 <= year <= 9999 for year in years):
        raise ValueError("its years are not years")
    if not methods or len(set(methods)) < len(methods) or not all(methods):
        raise ValueError("its methods are not names")
    if settings.reference not in methods:
        raise ValueError(f"the reference {settings.reference[:60]} is not one of its methods")
    if not (math.isfinite(settings.anchor_px) and settings.anchor_px >= 0):
        raise ValueError(f"anchor_px is {settings.anchor_px}")
    if settings.anchors and not (len(settings.anchors) == len(years) and min(settings.anchors) >= 0):
        raise ValueError(f"anchors are {list(settings.anchors)[:60]}, not one for each year")

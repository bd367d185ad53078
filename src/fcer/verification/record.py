"""The record of forecasts: one row a forecast, in a CSV file that only ever gains rows, each counted once."""

import math
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fcer.errors import DataError
from fcer.runtime.csv_cells import unguarded
from fcer.runtime.sealed_text import read_sealed_csv, write_sealed_csv
from fcer.verification.alarms import PROMISED
from fcer.verification.forecast import Forecast, ForecastMaps
from fcer.verification.scores import score_day, zone_miss
from fcer.verification.truth import SEEN, Truth

__all__ = ["SCORES", "TEXTS", "compared", "read_record", "row_of", "with_rows", "write_record"]

TEXTS = (
    *("key", "model", "student", "calibration", "promise", "fire", "date", "status", "reason"),
    *("lacking", "beyond", "synthetic", "file"),
)
_LATER = ("promise", "synthetic")
"""Texts that records of earlier versions do not have."""
SCORES = ("ap", "lift", "brier_skill", "nll_skill", "asd_m", "auroc", "auroc_within")
_NUMBERS = (
    *SCORES,
    *("burnt_km2", "predicted_km2"),
    *(f"{name}_{what}" for name in PROMISED for what in ("rank", "of", "expected")),
    *("lacking_at_most", "channels", "validation_fires"),
    *("west", "south", "east", "north"),
)


def row_of(forecast: Forecast, truth: Truth) -> dict[str, Any]:
    """What there is to say of a forecast: what it is, what it promised, and, where its day was seen, its scores."""
    row: dict[str, Any] = {
        "key": forecast.key,
        "model": forecast.label,
        "student": forecast.student,
        "calibration": forecast.calibration,
        "promise": forecast.expected.key if forecast.expected else "",
        "fire": forecast.fire,
        "date": str(forecast.day),
        "status": truth.status,
        "reason": truth.reason,
        "synthetic": "yes" if forecast.synthetic else "",
        "file": forecast.path.name,
        **_inputs(forecast),
        **(dict(zip(("west", "south", "east", "north"), forecast.box, strict=True)) if forecast.box else {}),
    }
    if truth.burnt is not None and truth.status == SEEN:
        row |= _scored(forecast, forecast.read(), truth)
    return row


def _inputs(forecast: Forecast) -> dict[str, Any]:
    """How the inputs compare with those of the student's validation fires."""
    expected = forecast.expected
    said = {"lacking": ", ".join(forecast.lacking), "lacking_at_most": expected.lacking if expected else math.nan}
    if expected is None:
        return said
    compared = {name: ends for name, ends in expected.ranges.items() if name in forecast.means}
    beyond = [name for name, (low, high) in compared.items() if not low <= forecast.means[name] <= high]
    return {**said, "beyond": ", ".join(beyond), "channels": len(expected.ranges), "validation_fires": expected.fires}


def _scored(forecast: Forecast, maps: ForecastMaps, truth: Truth) -> dict[str, Any]:
    burnt = truth.burnt
    assert burnt is not None
    height_m, width_m = forecast.pixel_m
    km2 = height_m * width_m / 1e6
    scores = score_day(
        burnt,
        maps.probability,
        maps.uncertainty,
        threshold=forecast.threshold,
        anchor_px=forecast.anchor_px,
        pixel_m=(height_m + width_m) / 2,
        today=truth.before,
    )
    row: dict[str, Any] = {name: getattr(scores, name) for name in SCORES}
    row |= {"burnt_km2": scores.burnt_pixels * km2, "predicted_km2": scores.predicted_pixels * km2}
    row |= compared(forecast, row)
    if maps.zone is None:
        return row
    for miss in forecast.misses:
        zone = np.asarray(maps.zone >= miss - 1e-6)
        row |= {f"miss_{miss:g}": zone_miss(burnt, zone), f"zone_km2_{miss:g}": float(zone.sum()) * km2}
    return row


def compared(forecast: Forecast, row: Mapping[str, float]) -> dict[str, float]:
    """Of each score, how many of the validation fires it is at least as good as, their number and their mean."""
    expected = forecast.expected
    found: dict[str, float] = {}
    if expected is None:
        return found
    for name in PROMISED:
        others = expected.scores.get(name, ())
        # Errors at another threshold are other errors
        if not others or math.isnan(row[name]) or (name == "auroc" and forecast.threshold != expected.threshold):
            continue
        rank = int(np.searchsorted(others, row[name], side="right"))
        found |= {f"{name}_rank": rank, f"{name}_of": len(others), f"{name}_expected": float(np.mean(others))}
    return found


def with_rows(record: pd.DataFrame, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The record with more rows: a forecast that was verified stays as it is, one that was not is told anew."""
    known: dict[str, dict[Any, Any]] = {str(row["key"]): dict(row) for row in record.to_dict("records")}
    for row in rows:
        if known.get(row["key"], {}).get("status") != SEEN:
            known[row["key"]] = dict(row)
    return _ordered(pd.DataFrame(list(known.values())))


def read_record(path: Path) -> pd.DataFrame:
    """What is on record; nothing where there is no such file."""
    if not path.exists():
        return _ordered(pd.DataFrame())
    try:
        record = read_sealed_csv(path, dtype=str, keep_default_na=False)
        if not set(TEXTS) - set(_LATER) <= set(record):
            raise ValueError("a column is lacking")
        record = record.assign(**{name: "" for name in _LATER if name not in record})
        for name in TEXTS:
            record[name] = [unguarded(text) for text in record[name]]
        for text in record["date"]:
            date.fromisoformat(text)
        for column in set(record) - set(TEXTS):
            record[column] = [float(text or "nan") for text in record[column]]  # to the last bit
    except (ValueError, TypeError, OSError) as error:
        raise DataError(f"{path}: is no record of forecasts ({error}); move it away, and verify again") from None
    return _ordered(record)


def write_record(path: Path, record: pd.DataFrame) -> None:
    """The file appears once it is whole."""
    write_sealed_csv(path, record)


def _ordered(record: pd.DataFrame) -> pd.DataFrame:
    """Columns and rows in one order, whatever came first: the same forecasts give the same file."""
    zones = sorted((name for name in map(str, record) if name.startswith(("miss_", "zone_km2_"))), key=_by_miss)
    record = record.reindex(columns=[*TEXTS, *_NUMBERS, *zones])
    kinds: dict[str, Any] = {**dict.fromkeys(TEXTS, object), **dict.fromkeys([*_NUMBERS, *zones], float)}
    record = record.astype(kinds).fillna(dict.fromkeys(TEXTS, ""))
    return record.sort_values(["model", "student", "date", "fire", "key"], ignore_index=True)


def _by_miss(name: str) -> tuple[float, str]:
    kind, _, miss = name.rpartition("_")
    return float(miss), kind

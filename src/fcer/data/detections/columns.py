"""What a detection's columns mean, in the spellings of near-real-time and archive files; bad values are refused.

A file's rows come here in pieces; a sentence names the file, the line and the value.
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fcer.data.detections.table import MINUTES_A_DAY, Detections
from fcer.errors import DataError

__all__ = ["NUMBERS", "REQUIRED", "TEXTS", "missing_columns", "parsed", "satellite_code"]

NUMBERS = ("latitude", "longitude", "scan", "track")
REQUIRED = (*NUMBERS, "acq_date", "acq_time", "satellite", "confidence")
TEXTS = ("acq_date", "acq_time", "satellite", "confidence", "instrument", "version", "type", "daynight")

_LIMITS = {"latitude": (-90, 90), "longitude": (-180, 180), "scan": (0.01, 2), "track": (0.01, 2)}
_SATELLITES = {
    **dict.fromkeys(("N", "NPP", "SNPP", "SUOMINPP"), 0),
    **dict.fromkeys(("1", "20", "N20", "J1", "NOAA20", "JPSS1"), 1),
    **dict.fromkeys(("2", "21", "N21", "J2", "NOAA21", "JPSS2"), 2),
}
_MODIS = ("T", "A", "TERRA", "AQUA")
_KINDS = {"0": 0, "1": 1, "2": 2, "3": 3}
_CONFIDENCES = {"L": 0, "LOW": 0, "N": 1, "NOMINAL": 1, "H": 2, "HIGH": 2}
_EPOCH = date(1970, 1, 1).toordinal()

Where = Callable[[int], str]
"""How a sentence names a row: the file and its line."""


def missing_columns(path: str, found: list[str]) -> str | None:
    """The sentence for a file that lacks columns."""
    missing = [name for name in REQUIRED if name not in found]
    if not missing:
        return None
    there = ", ".join(found)[:80] or "nothing"
    return (
        f"{path}: no column {', '.join(missing)} (found: {there}); give a file of VIIRS 375 m detections "
        "as NASA FIRMS offers it, with all its columns"
    )


def parsed(frame: pd.DataFrame, where: Where) -> Detections:
    """Rows whose columns are REQUIRED and perhaps more, as numbers."""
    _coded(frame, "instrument", lambda text: None if text == "MODIS" else 0, where)
    satellite = _coded(frame, "satellite", satellite_code, where)
    numbers = {name: _numbers(frame, name, where) for name in NUMBERS}
    day = _coded(frame, "acq_date", _day, where)
    minute = _coded(frame, "acq_time", _minute, where)
    confidence = _coded(frame, "confidence", lambda text: _CONFIDENCES.get(text, -1), where)
    return Detections(
        latitude=numbers["latitude"],
        longitude=numbers["longitude"],
        scan=numbers["scan"].astype(np.float32),
        track=numbers["track"].astype(np.float32),
        time=(day * MINUTES_A_DAY + minute).astype(np.int32),
        satellite=satellite.astype(np.uint8),
        confidence=confidence.astype(np.uint8),
        kind=_coded(frame, "type", lambda text: _KINDS.get(text, -1), where, absent=0).astype(np.uint8),
        # Files of the standard product say 1 or 2, those of hours ago 2.0NRT, 2.0RT or 2.0URT
        provisional=_coded(frame, "version", lambda text: int("RT" in text), where, absent=1) > 0,
    )


def satellite_code(name: str) -> int | None:
    """The satellite behind a name or letter; -1 where there is none, None where it is one with MODIS."""
    text = _plain(name)
    return None if text in _MODIS else _SATELLITES.get(text, -1)


def _numbers(frame: pd.DataFrame, name: str, where: Where) -> NDArray[np.float64]:
    values = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
    low, high = _LIMITS[name]
    wrong = ~((values >= low) & (values <= high))
    if wrong.any():
        k = int(wrong.argmax())
        raise DataError(
            f"{where(k)}: {name} is {_shown(frame[name].iloc[k])}, but should be a number from {low:g} to {high:g}; "
            "download the file again"
        )
    return values


def _coded(
    frame: pd.DataFrame, name: str, code: Callable[[str], int | None], where: Where, absent: int = 0
) -> NDArray[np.int64]:
    """A column of few different texts as numbers; -1 is a bad value, None the mark of MODIS; `absent` without it."""
    if name not in frame:
        return np.full(len(frame), absent)
    places, texts = pd.factorize(frame[name], use_na_sentinel=False)
    codes = np.empty(len(texts), np.int64)
    for k, text in enumerate(texts):
        found = code(_plain(text))
        if found is None:
            raise DataError(
                f"{where(int((places == k).argmax()))}: this is MODIS, whose pixels are 1 km wide; "
                "give the 375 m detections of VIIRS (Suomi NPP, NOAA-20 or NOAA-21)"
            )
        if found < 0:
            hint = _HINTS[name]
            if name == "confidence" and _plain(text).isdigit():
                hint = "low, nominal or high (a number is MODIS's: give the 375 m detections of VIIRS)"
            raise DataError(
                f"{where(int((places == k).argmax()))}: {name} is {_shown(text)}, but should be {hint}; "
                "download the file again"
            )
        codes[k] = found
    return codes[places]


_HINTS = {
    "satellite": "Suomi NPP, NOAA-20 or NOAA-21 (N, 1 or 2)",
    "acq_date": "a date such as 2020-09-26",
    "acq_time": "a time from 0000 to 2359",
    "confidence": "low, nominal or high",
    "type": "0, 1, 2 or 3",
}


def _plain(text: Any) -> str:
    """A spelling without what varies: case, blanks, hyphens, and the point that a number read as text may have."""
    return re.sub(r"[\s_-]|\.0$", "", "" if pd.isna(text) else str(text)).upper()


def _shown(text: Any) -> str:
    return "empty" if pd.isna(text) or text == "" else str(text)[:40]


def _day(text: str) -> int:
    try:
        return date.fromisoformat(text.replace("/", "")).toordinal() - _EPOCH
    except ValueError:
        return -1


def _minute(text: str) -> int:
    digits = text.replace(":", "")
    if not digits.isdecimal() or len(digits) > 4:
        return -1
    hour, minute = divmod(int(digits), 100)
    return hour * 60 + minute if hour < 24 and minute < 60 else -1

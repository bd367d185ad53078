"""From maps and the truth to the record: each forecast is scored once, and what cannot be is said."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fcer.errors import DataError
from fcer.verification.forecast import Forecast, read_forecast
from fcer.verification.record import row_of, with_rows
from fcer.verification.truth import SEEN, WAITING, TruthSource

__all__ = ["Verified", "verify_maps"]


@dataclass
class Verified:
    """What came of some maps."""

    record: pd.DataFrame
    new: int = 0
    """Forecasts that were not on record as verified before."""
    repeated: int = 0
    """Those that were, or are there twice."""
    waiting: list[str] = field(default_factory=list)
    """A sentence for each forecast whose day is not known yet."""
    missing: list[str] = field(default_factory=list)
    """A sentence for each whose day was not seen."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each map that cannot be used."""
    forecasts: list[Forecast] = field(default_factory=list)
    """All that could be read, once each."""


def verify_maps(paths: Iterable[Path], truth: TruthSource, record: pd.DataFrame) -> Verified:
    """Score the maps whose day is known and that are not on record, and tell of the others."""
    done = set(record.loc[record["status"] == SEEN, "key"])
    verified, rows = Verified(record), {}
    read: dict[str, Forecast] = {}
    for path in paths:
        try:
            forecast = read_forecast(path)
            if forecast.key in done or forecast.key in rows:
                verified.repeated += 1
                read.setdefault(forecast.key, forecast)
                continue
            row = row_of(forecast, truth.of(forecast))
        except DataError as error:
            verified.problems.append(str(error))
            continue
        read[forecast.key], rows[forecast.key] = forecast, row
        if row["status"] == SEEN:
            verified.new += 1
        else:
            told = verified.waiting if row["status"] == WAITING else verified.missing
            told.append(f"{path}: {row['reason']}")
    verified.forecasts = list(read.values())
    verified.record = with_rows(record, rows.values())
    return verified

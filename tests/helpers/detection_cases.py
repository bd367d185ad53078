"""Files of detections for tests: written as NASA FIRMS does, with fires whose place and days are known."""

import os
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = (
    "latitude",
    "longitude",
    "bright_ti4",
    "scan",
    "track",
    "acq_date",
    "acq_time",
    "satellite",
    "confidence",
    "version",
    "bright_ti5",
    "frp",
    "daynight",
)
FIRST = date(2020, 8, 1)


def real_file(satellite: str) -> Path:
    """A week of real detections, where it is there: beside the repository, or in the folder FCER_REAL."""
    beside = Path(__file__).parents[3] / "shared" / "real"
    return Path(os.environ.get("FCER_REAL", beside)) / f"viirs_{satellite}_conus_2020-10-03_7d.csv"


def frame_of(**columns: object) -> pd.DataFrame:
    """Detections with the given columns; the others hold what is usual."""
    usual = {
        "latitude": 40.0,
        "longitude": -120.0,
        "bright_ti4": 330.0,
        "scan": 0.39,
        "track": 0.36,
        "acq_date": str(FIRST),
        "acq_time": "1012",
        "satellite": "N",
        "confidence": "nominal",
        "version": "2",
        "bright_ti5": 295.0,
        "frp": 3.0,
        "daynight": "N",
    }
    length = max([np.size(value) for value in columns.values()], default=1)
    table = {name: np.broadcast_to(np.asarray(value), length) for name, value in {**usual, **columns}.items()}
    return pd.DataFrame({name: table[name] for name in (*COLUMNS, *(set(columns) - set(COLUMNS)))})


def burning(
    lat: float = 40.0,
    lng: float = -120.0,
    *,
    days: int = 7,
    per_day: int = 30,
    seed: int = 0,
    first: date = FIRST,
    drift_km: float = 2.0,
    **columns: object,
) -> pd.DataFrame:
    """A fire that moves `drift_km` north-east a day, `per_day` detections in each of two overpasses."""
    rng = np.random.default_rng(seed)
    n = 2 * per_day
    parts = []
    for k in range(days):
        km = rng.normal(0, 1.5, (n, 2)) + drift_km * k
        north = lat + km[:, 0] / 111.2
        east = lng + km[:, 1] / (111.2 * np.cos(np.radians(lat)))
        parts.append(
            frame_of(
                latitude=north.round(5),
                longitude=((east + 180) % 360 - 180).round(5),
                acq_date=str(first + timedelta(days=k)),
                **{"acq_time": ["1012"] * per_day + ["2048"] * per_day, **columns},
            )
        )
    return pd.concat(parts, ignore_index=True)


def mill(lat: float = 41.6, lng: float = -87.3, *, days: int = 7, seed: int = 0, **columns: object) -> pd.DataFrame:
    """A works: three detections in each overpass, always within 400 m."""
    return burning(lat, lng, days=days, per_day=3, drift_km=0, seed=seed, **columns).assign(
        latitude=lambda d: lat + (d.latitude - lat) / 6, longitude=lambda d: lng + (d.longitude - lng) / 6
    )


def season(rows: int, seed: int = 0) -> pd.DataFrame:
    """`rows` detections of a season: fires of all sizes, works, and single ones that belong to nothing."""
    rng = np.random.default_rng(seed)
    parts, count, k = [], 0, 0
    while count < rows * 0.85:
        size = int(np.clip(rng.pareto(1.1) * 30, 5, 800))
        days = int(rng.integers(3, 25))
        start = FIRST + timedelta(days=int(rng.integers(0, 150)))
        place = {"lat": rng.uniform(31, 49), "lng": rng.uniform(-124, -80)}
        satellite = rng.choice(["N", "1"])
        parts.append(burning(**place, days=days, per_day=size, seed=k, first=start, satellite=satellite))
        count += len(parts[-1])
        k += 1
    alone = max(1, rows - count)
    when = [str(FIRST + timedelta(days=int(d))) for d in rng.integers(0, 170, alone)]
    lat, lng = rng.uniform(31, 49, alone).round(5), rng.uniform(-124, -80, alone).round(5)
    parts.append(frame_of(latitude=lat, longitude=lng, acq_date=when))
    return pd.concat(parts, ignore_index=True).iloc[:rows]


def written(folder: Path, frame: pd.DataFrame, name: str = "detections.csv") -> Path:
    """The CSV file of a table."""
    path = folder / name
    frame.to_csv(path, index=False)
    return path

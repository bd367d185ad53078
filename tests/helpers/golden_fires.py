"""The fires behind loader.json and loader.npz, rebuilt from their formula, in both forms on disk."""

import json
from datetime import date, timedelta
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from fcer.data.fire import Place
from fcer.data.geotiff import write_geotiff

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
LOADER = json.loads((GOLDEN / "loader.json").read_text())
PLACE = Place("EPSG:32611", (375.0, 0.0, 400_000.0, 0.0, -375.0, 4_500_000.0))


def fire_days(days: int, height: int, width: int, seed: float) -> NDArray[np.float32]:
    """(days, 23, height, width): smooth waves, real angles and land-cover classes, a few NaN in NDVI."""
    day, channel, row, column = np.ogrid[:days, :23, :height, :width]
    waves = np.sin(0.11 * (row + 1) + 0.05 * (column + 1) * (1 + 0.1 * channel) + 0.7 * day + seed)
    waves = waves + 0.5 * np.cos(0.3 * channel + 0.2 * column + day)
    values = (1000 * waves).astype(np.float32)
    for angle in (7, 13, 19):
        values[:, angle] = (np.abs(waves[:, angle]) * 240) % 360
    row, column, day = row[:, 0], column[:, 0], day[:, 0]
    values[:, 16] = 1 + np.floor(8 + 8 * np.sin(0.07 * row + 0.05 * column))
    active = np.sin(0.15 * row + 0.4 * day + seed) + np.cos(0.12 * column - 0.2 * day)
    hours = np.floor(1 + 11 * np.abs(np.sin(0.9 * row + 0.3 * column)))
    values[:, 22] = np.where(active > 1.55, hours, 0)
    values[:, 3][np.abs(waves[:, 3]) < 0.02] = np.nan
    return values


def dates_of(year: int, days: int) -> list[date]:
    return [date(year, 7, 1) + timedelta(days=k) for k in range(days)]


def write_hdf5_like_released(path: Path, values: NDArray[np.float32], dates: list[str] | None = None) -> None:
    """As the dataset's own script writes it: attributes on `data`, nothing else in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    year = int(path.parent.name)
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("data", data=values)
        dataset.attrs["year"] = year
        dataset.attrs["fire_name"] = path.stem
        dataset.attrs["img_dates"] = dates or [d.isoformat() for d in dates_of(year, len(values))]
        dataset.attrs["lnglat"] = (-120.5, 40.25)


def write_golden_dataset(root: Path, *, geotiff: bool = False) -> Path:
    for f in LOADER["files"]:
        values = fire_days(f["days"], f["height"], f["width"], f["seed"])
        if geotiff:
            for d, day in zip(dates_of(f["year"], f["days"]), values, strict=True):
                write_geotiff(root / str(f["year"]) / f["name"] / f"{d}.tif", day, PLACE)
        else:
            write_hdf5_like_released(root / str(f["year"]) / f"{f['name']}.hdf5", values)
    return root

"""Fires as a file of detections, one for each burning pixel: what `ingest` reads where nothing else is given."""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fcer.core.regions import PIXEL_METRES
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.detections.grid import transformed
from fcer.data.fire import Fire
from fcer.errors import DataError
from fcer.runtime.files import atomic_path

__all__ = ["write_detections"]

_COLUMNS = ("latitude", "longitude", "scan", "track", "acq_date", "acq_time", "satellite", "confidence", "version")


def write_detections(path: Path, fires: Iterable[Fire]) -> int:
    """Write a CSV with the columns of NASA FIRMS, and return how many detections it holds."""
    count = 0
    with atomic_path(path) as partial, partial.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for fire in fires:
            if fire.place is None or fire.place.crs is None or fire.dates is None:
                raise DataError(f"{fire}: does not say where or when it burnt; detections need both")
            a, b, c, d, e, f = fire.place.transform
            for k, day in enumerate(fire.dates):
                hours = fire.read(slice(k, k + 1), (ACTIVE_FIRE,))[0, 0]
                rows, columns = np.nonzero(hours)
                x, y = a * (columns + 0.5) + b * (rows + 0.5) + c, d * (columns + 0.5) + e * (rows + 0.5) + f
                lng, lat = transformed(fire.place.crs, "EPSG:4326", x, y)
                size = f"{PIXEL_METRES / 1000:g}"
                for east, north, hour in zip(lng, lat, hours[rows, columns], strict=True):
                    time = f"{int(hour) % 24:02d}30"
                    writer.writerow((f"{north:.5f}", f"{east:.5f}", size, size, day, time, "N", "nominal", "2"))
                count += len(rows)
    return count

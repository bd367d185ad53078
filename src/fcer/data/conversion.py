"""The GeoTIFF release, one fire a folder, into one HDF5 file a fire: far faster to read."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.data.catalog import find_years
from fcer.data.channels import CHANNELS
from fcer.data.geotiff import GeoTIFFFire, open_geotiff
from fcer.data.hdf5 import open_hdf5, write_hdf5
from fcer.errors import DataError
from fcer.runtime.parallel import map_tasks

__all__ = ["Conversion", "convert"]


@dataclass(frozen=True)
class Conversion:
    """What a conversion did."""

    converted: int
    present: int
    """Fires that an earlier conversion had completed."""
    problems: tuple[str, ...]
    """A sentence for each fire that could not be converted."""


@dataclass(frozen=True)
class _Task:
    folder: Path
    target: Path

    def __str__(self) -> str:
        return str(self.folder)


def convert(source: Path, out: Path, *, workers: int = 0) -> Conversion:
    """Convert every fire below `source`; complete ones below `out` stay, broken ones are reported."""
    folders = [
        folder
        for year in find_years(source)
        for folder in sorted((source / str(year)).iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    ]
    if not folders:
        raise DataError(f"{source}: no fire in it; the GeoTIFF release has YEAR/fire_X/DATE.tif")
    tasks = [_Task(folder, out / folder.parent.name / f"{folder.name}.hdf5") for folder in folders]
    outcomes = [outcome for _, outcome in map_tasks(_convert_fire, tasks, workers=workers, label="convert")]
    problems = sorted(outcome for outcome in outcomes if isinstance(outcome, str))
    return Conversion(outcomes.count(True), outcomes.count(False), tuple(problems))


def _convert_fire(task: _Task) -> bool | str:
    """True: converted now; False: it was there already; a sentence: why it could not be."""
    try:
        fire = open_geotiff(task.folder)
        if _is_complete(task.target, fire):
            return False
        shape = (fire.days, len(CHANNELS), fire.height, fire.width)
        write_hdf5(
            task.target,
            _days(fire),
            shape,
            dates=fire.dates,
            lnglat=fire.lnglat,
            place=fire.place,
            source=_identity(fire),
        )
        return True
    except DataError as error:
        return str(error)


def _is_complete(target: Path, fire: GeoTIFFFire) -> bool:
    """Whether `target` was converted from these very files: they may have been repaired or gained days since."""
    try:
        return open_hdf5(target).source == _identity(fire)
    except DataError:
        return False


def _identity(fire: GeoTIFFFire) -> str:
    """What changes with the files: their names, sizes and dates."""
    stats = [(tif.name, tif.stat().st_size, tif.stat().st_mtime_ns) for tif in fire.tifs]
    return hashlib.sha256(repr(stats).encode()).hexdigest()


def _days(fire: GeoTIFFFire) -> Iterator[NDArray[np.float32]]:
    for k in range(fire.days):
        yield fire.read(slice(k, k + 1), range(len(CHANNELS)))[0]

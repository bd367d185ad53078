"""A fire as one HDF5 file, `YEAR/fire_X.hdf5`: dataset `data` (days, 23, height, width) float32."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.fire import EVERYWHERE, Fire, Place, channel_runs
from fcer.errors import DataError
from fcer.files import atomic_path

__all__ = ["HDF5Fire", "open_hdf5", "write_hdf5"]


@dataclass(eq=False)
class HDF5Fire(Fire):
    """A fire in an HDF5 file."""

    _opened: tuple[int, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def read(
        self, days: slice, channels: Sequence[int], rows: slice = EVERYWHERE, columns: slice = EVERYWHERE
    ) -> NDArray[np.float32]:
        """(days, channels, rows, columns) of the raw values."""
        data = self._data()
        n_days, n_rows, n_columns = (
            len(range(*window.indices(size)))
            for window, size in ((days, self.days), (rows, self.height), (columns, self.width))
        )
        window = np.empty((n_days, len(channels), n_rows, n_columns), np.float32)
        for here, there in channel_runs(channels):
            window[:, here] = data[days, there, rows, columns]
        if ACTIVE_FIRE in channels:
            active = window[:, channels.index(ACTIVE_FIRE)]
            np.fmax(active, 0, out=active)  # no detection is 0, however a file writes it
        return window

    def files(self) -> list[Path]:
        """The one file."""
        return [self.path]

    def _data(self) -> Any:
        """The array, kept open for this process only: an HDF5 handle must not be shared across a fork.

        The dataset's files hold one plain block of numbers. Mapping that block into memory skips HDF5's
        machinery, which costs more than the reading itself for small windows.
        """
        if self._opened is None or self._opened[0] != os.getpid():
            dataset = h5py.File(self.path, "r")["data"]
            offset = dataset.id.get_offset()
            if offset is not None and dataset.dtype == np.dtype("<f4"):
                data = np.memmap(self.path, np.dtype("<f4"), "r", offset, dataset.shape)
                dataset.file.close()
            else:
                data = dataset
            self._opened = (os.getpid(), data)
        return self._opened[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}


def open_hdf5(path: Path) -> HDF5Fire:
    """Open and check one file; a DataError says what is wrong with it."""
    try:
        with h5py.File(path, "r") as file:
            return _checked(path, file)
    except PermissionError:
        raise DataError(f"{path}: no permission to read it; run chmod +r on it or ask its owner") from None
    except OSError as error:
        raise DataError(f"{path}: {_reason(path, error)}") from None


def _reason(path: Path, error: OSError) -> str:
    if not path.exists():
        return "no such file; is it a broken link?"
    with path.open("rb") as file:
        signature = file.read(8)
    if signature == b"\x89HDF\r\n\x1a\n":
        return f"the HDF5 file is truncated or damaged ({path.stat().st_size} bytes); copy or convert it again"
    if not signature:
        return "the file is empty; copy or convert it again"
    if isinstance(error, OSError) and signature[:2] in (b"II", b"MM"):
        return "this is a TIFF file with another name; give the GeoTIFF folders to `fcer convert --source`"
    return "this is no HDF5 file; remove it or write it again with `fcer convert`"


def _checked(path: Path, file: Any) -> HDF5Fire:
    dataset = file.get("data")
    if not isinstance(dataset, h5py.Dataset):
        found = ", ".join(file) or "nothing"
        raise DataError(f"{path}: holds no dataset named `data` (found: {found}); write it again with `fcer convert`")
    shape = dataset.shape
    if len(shape) != 4 or 0 in shape or dataset.dtype.kind not in "fiu":
        raise DataError(
            f"{path}: `data` is {dataset.dtype} {shape}, but should be numbers (days, {len(CHANNELS)}, height, width)"
        )
    if shape[1] != len(CHANNELS):
        raise DataError(
            f"{path}: {shape[1]} channels, but WildfireSpreadTS has {len(CHANNELS)}; "
            "convert it again from the GeoTIFFs, or remove it"
        )
    # The dataset's own scripts put the attributes on `data`; files of others have them on the file itself
    attributes = {**file.attrs, **dataset.attrs}
    return HDF5Fire(
        path=path,
        year=_year(path, attributes),
        name=path.stem,
        days=shape[0],
        height=shape[2],
        width=shape[3],
        dates=_dates(path, attributes.get("img_dates"), shape[0]),
        place=_place(attributes),
        lnglat=_lnglat(attributes.get("lnglat")),
    )


def _year(path: Path, attributes: dict[str, Any]) -> int:
    """The folder's name is the year; the attribute must not contradict it."""
    said = attributes.get("year")
    if not path.parent.name.isdigit():
        if said is None:
            raise DataError(f"{path}: neither its folder nor its attribute `year` tells the year; put it in YEAR/")
        return int(said)
    year = int(path.parent.name)
    if said is not None and int(said) != year:
        raise DataError(f"{path}: says that it is of {int(said)}, but lies in the folder {year}; move it")
    return year


def _dates(path: Path, written: Any, days: int) -> tuple[date, ...] | None:
    if written is None:
        return None
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in np.ravel(written)]
    if len(texts) != days:
        raise DataError(
            f"{path}: {days} days but {len(texts)} dates in `img_dates`; convert it again from the GeoTIFFs"
        )
    try:
        dates = tuple(date.fromisoformat(text.removesuffix(".tif")[:10]) for text in texts)
    except ValueError:
        return None  # names that are no dates tell nothing about gaps
    if any(b <= a for a, b in pairwise(dates)):
        raise DataError(f"{path}: the dates in `img_dates` are not in order; convert it again from the GeoTIFFs")
    return dates


def _place(attributes: dict[str, Any]) -> Place | None:
    if "crs" not in attributes or "transform" not in attributes:
        return None
    return Place(str(attributes["crs"]), tuple(float(v) for v in attributes["transform"]))


def _lnglat(written: Any) -> tuple[float, float] | None:
    values = np.ravel(written).tolist() if written is not None else []
    return (float(values[0]), float(values[1])) if len(values) == 2 else None


def write_hdf5(
    path: Path,
    days: Iterable[NDArray[np.float32]],
    shape: tuple[int, int, int, int],
    *,
    dates: Sequence[date] | None,
    lnglat: tuple[float, float] | None,
    place: Place | None,
) -> None:
    """Write a fire day by day, so that memory holds one day at most; the file appears once it is whole."""
    with atomic_path(path) as partial, h5py.File(partial, "w") as file:
        dataset = file.create_dataset("data", shape, np.dtype("<f4"), track_times=False)
        for k, day in enumerate(days):
            dataset[k] = day
        dataset.attrs["year"] = int(path.parent.name)
        dataset.attrs["fire_name"] = path.stem
        if dates is not None:
            dataset.attrs["img_dates"] = [d.isoformat() for d in dates]
        if lnglat is not None:
            dataset.attrs["lnglat"] = lnglat
        if place is not None:
            dataset.attrs["crs"] = place.crs
            dataset.attrs["transform"] = place.transform

"""A fire as one HDF5 file, `YEAR/fire_X.hdf5`: dataset `data` (days, 23, height, width) float32."""

import os
import resource
from collections import OrderedDict
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
from fcer.data.hdf5_safety import NotInFile, own_array
from fcer.errors import DataError
from fcer.runtime.files import atomic_path

__all__ = ["HDF5Fire", "open_hdf5", "write_hdf5"]


@dataclass(eq=False)
class HDF5Fire(Fire):
    """A fire in an HDF5 file."""

    source: str | None = field(default=None, kw_only=True)
    """Identity of the GeoTIFFs that it was converted from."""

    def read(
        self, days: slice, channels: Sequence[int], rows: slice = EVERYWHERE, columns: slice = EVERYWHERE
    ) -> NDArray[np.float32]:
        """(days, channels, rows, columns) of the raw values."""
        n_days, n_rows, n_columns = (
            len(range(*window.indices(size)))
            for window, size in ((days, self.days), (rows, self.height), (columns, self.width))
        )
        window = np.empty((n_days, len(channels), n_rows, n_columns), np.float32)
        try:
            data = _open_array(self.path)
            for here, there in channel_runs(channels):
                window[:, here] = data[days, there, rows, columns]
        except _DAMAGED as error:
            raise DataError(f"{self.path}: {_reason(self.path)} ({error})") from None
        if ACTIVE_FIRE in channels:
            active = window[:, channels.index(ACTIVE_FIRE)]
            np.fmax(active, 0, out=active)  # no detection is 0, however a file writes it
        return window

    def files(self) -> list[Path]:
        """The one file."""
        return [self.path]


_DAMAGED = (OSError, RuntimeError, TypeError, KeyError, ValueError)
"""What h5py raises where bytes of a file are not what HDF5 expects there."""

_OPEN_AT_ONCE = 128
_SHARE_OF_LIMIT = 4
"""Of the files that this process may have open, one in so many: the rest is for everybody else."""
_opened: OrderedDict[tuple[Path, int, int, int, int], Any] = OrderedDict()


def _open_array(path: Path) -> Any:
    """The array of a file, kept open: the latest few, since a process may not hold thousands of files.

    Known by process too, since an HDF5 handle must not be shared across a fork, and by what changes with the
    file, since another one may have taken its place. The dataset's files hold one plain block of numbers; mapping
    that block into memory skips HDF5's machinery, which costs more than the reading itself for small windows.
    """
    stat = path.stat()
    key = (path, os.getpid(), stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if key not in _opened:
        dataset = h5py.File(path, "r")["data"]
        offset = dataset.id.get_offset()
        if offset is not None and dataset.dtype == np.dtype("<f4"):
            _opened[key] = np.memmap(path, np.dtype("<f4"), "r", offset, dataset.shape)
            dataset.file.close()
        else:
            _opened[key] = dataset
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # -1, or more than anybody needs: no limit
        most = min(_OPEN_AT_ONCE, allowed // _SHARE_OF_LIMIT) if allowed > 0 else _OPEN_AT_ONCE
        while len(_opened) > max(1, most):
            _opened.popitem(last=False)
    _opened.move_to_end(key)
    return _opened[key]


def open_hdf5(path: Path, *, any_folder: bool = False) -> HDF5Fire:
    """Open and check one file; a DataError says what is wrong with it.

    With `any_folder` it may lie anywhere: the year is then what the file says, or that of its first day.
    """
    if not path.is_file():  # opening a pipe would wait for ever
        raise DataError(f"{path}: {_reason(path)}")
    try:
        with h5py.File(path, "r") as file:
            return _checked(path, file, any_folder)
    except PermissionError:
        raise DataError(f"{path}: no permission to read it; run chmod +r on it or ask its owner") from None
    except _DAMAGED:
        raise DataError(f"{path}: {_reason(path)}") from None


def _reason(path: Path) -> str:
    """Why HDF5 could not read a file."""
    if path.is_dir():
        return "this is a folder with a file's name; remove it"
    if not path.is_file():
        return "no such file, or none to read; is it a broken link?"
    with path.open("rb") as file:
        signature = file.read(8)
    if signature == b"\x89HDF\r\n\x1a\n":
        return f"the HDF5 file is truncated or damaged ({path.stat().st_size} bytes); copy or convert it again"
    if not signature:
        return "the file is empty; copy or convert it again"
    if signature[:2] in (b"II", b"MM"):
        return "this is a TIFF file with another name; give the GeoTIFF folders to `fcer convert --source`"
    return "this is no HDF5 file; remove it or write it again with `fcer convert`"


def _checked(path: Path, file: Any, any_folder: bool) -> HDF5Fire:
    try:
        dataset = own_array(file, "data")
    except NotInFile as problem:
        found = ", ".join(file)[:200] or "nothing"
        raise DataError(
            f"{path}: its dataset `data` {problem} (found: {found}); write it again with `fcer convert`"
        ) from None
    shape: tuple[int, ...] = dataset.shape
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
    dates = _dates(path, attributes.get("img_dates"), shape[0])
    written, lnglat = attributes.get("year"), _numbers(attributes.get("lnglat"))
    return HDF5Fire(
        path=path,
        year=_year_said(path, written, dates) if any_folder else _year(path, written),
        name=path.stem,
        days=shape[0],
        height=shape[2],
        width=shape[3],
        dates=dates,
        place=_place(attributes),
        lnglat=(lnglat[0], lnglat[1]) if len(lnglat) == 2 else None,
        source=source if isinstance(source := attributes.get("source"), str) else None,
    )


def _year(path: Path, written: Any) -> int:
    """The folder's name is the year; the attribute must not contradict it."""
    folder = path.parent.name
    said = _said(written)
    if not folder.isdigit():
        if len(said) != 1 or not isinstance(said[0], int) or not 1 <= said[0] <= 9999:
            raise DataError(f"{path}: neither its folder nor its attribute `year` tells the year; put it in YEAR/")
        return said[0]
    if len(said) == 1 and isinstance(said[0], int | float) and said[0] != int(folder):
        raise DataError(f"{path}: says that it is of {said[0]:g}, but lies in the folder {folder}; move it")
    return int(folder)


def _year_said(path: Path, written: Any, dates: tuple[date, ...] | None) -> int:
    """The year by the file itself, wherever it lies; by its folder only where the file says nothing."""
    said = _said(written)
    if len(said) == 1 and isinstance(said[0], int) and 1 <= said[0] <= 9999:
        return said[0]
    return dates[0].year if dates else _year(path, written)


def _said(written: Any) -> list[Any]:
    return np.ravel(written).tolist() if isinstance(written, int | float | np.generic | np.ndarray) else []


def _dates(path: Path, written: Any, days: int) -> tuple[date, ...] | None:
    if written is None:
        return None
    try:
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in np.ravel(written)]
    except UnicodeDecodeError:
        return None
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
    """Where the image lies, if the file says it in a way that can be used: reading needs no place."""
    crs = attributes.get("crs")
    if isinstance(crs, bytes):
        crs = crs.decode(errors="replace")
    return Place.said(crs if isinstance(crs, str) else None, _numbers(attributes.get("transform")))


def _numbers(written: Any) -> tuple[float, ...]:
    """An attribute's numbers; none where it holds anything else."""
    try:
        return tuple(float(value) for value in np.ravel(written))
    except (TypeError, ValueError):
        return ()


def write_hdf5(
    path: Path,
    days: Iterable[NDArray[np.float32]],
    shape: tuple[int, int, int, int],
    *,
    dates: Sequence[date] | None,
    lnglat: tuple[float, float] | None,
    place: Place | None,
    source: str | None = None,
    channels: Sequence[int] | None = None,
) -> None:
    """Write a fire day by day, so that memory holds one day at most; the file appears once it is whole.

    With `channels`, only those hold anything: the others are NaN and take no room.
    """
    layout = {} if channels is None else {"chunks": (1, 1, *shape[2:]), "fillvalue": np.nan}
    with atomic_path(path) as partial, h5py.File(partial, "w") as file:
        dataset = file.create_dataset("data", shape, np.dtype("<f4"), track_times=False, **layout)
        for k, day in enumerate(days):
            for there in (slice(None),) if channels is None else channels:
                dataset[k, there] = day[there]
        dataset.attrs["year"] = int(path.parent.name)
        dataset.attrs["fire_name"] = path.stem
        if dates is not None:
            dataset.attrs["img_dates"] = [d.isoformat() for d in dates]
        if lnglat is not None:
            dataset.attrs["lnglat"] = lnglat
        if source is not None:
            dataset.attrs["source"] = source
        if place is not None:
            if place.crs is not None:
                dataset.attrs["crs"] = place.crs
            dataset.attrs["transform"] = place.transform

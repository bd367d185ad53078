"""The predicted-maps file: what burnt, and any number of methods' fire probability and uncertainty.

    y                (N, H, W)  1 where fire burnt, else 0
    METHOD_prob      (N, H, W)  fire probability from 0 to 1
    METHOD_unc       (N, H, W)  uncertainty from 0 to 1
    METHOD_samples   (N, k, H, W)  optional: draws of tomorrow's fire, 1 where it burns
    fire_id, date    (N,)       optional: which fire and which day an image shows
    size             (N, 2)     optional: rows and columns of each image, where they differ
    year                        optional: else read off the file's name

What lies right of and below an image's size is padding: it holds no fire, and nobody counts it.

An npz file, or HDF5 for what does not fit in memory. Both are checked in full when opened, unless that is left to
whoever reads them, so that whoever holds a `PredictedMaps` need not check again.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from fcer.errors import PredictionsError
from fcer.maps.checks import (
    LABELS,
    check_labels,
    check_names,
    check_padding,
    check_size,
    check_values,
    stored_year,
    year_of_name,
)
from fcer.maps.file_identity import MapsFile
from fcer.maps.hdf5_arrays import USER_BLOCK, open_hdf5_arrays
from fcer.maps.npz_stream import open_npz_arrays, write_npz_array
from fcer.runtime.checksums import UNSEALED, seal
from fcer.runtime.files import atomic_path

__all__ = ["PredictedMaps", "open_maps", "write_maps"]

IMAGES_AT_ONCE = 16
"""Images in a block: few enough that what is computed from them stays in the processor's cache."""

_IN_MEMORY_BYTES = 512 << 20
_DAMAGED = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, IndexError, RuntimeError, OverflowError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
"""What zipfile, numpy and h5py raise where bytes of a file are not what they expect there."""


class MapArray(Protocol):
    """Maps (N, H, W) in memory or in a file, read in slices of images."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values."""

    def __getitem__(self, images: slice) -> NDArray[Any]: ...


@dataclass(frozen=True)
class PredictedMaps:
    """One year's maps of all methods, valid and with fire in one image at least.

    Closing it, or leaving its `with` block, closes the file behind it.

    Examples
    --------
    >>> y = np.zeros((1, 4, 4), int); y[0, 1, 1] = 1
    >>> maps = PredictedMaps.from_arrays({"y": y, "mine_prob": y * 0.9, "mine_unc": y * 0.1}, year=2021)
    >>> maps.methods, maps.shape, maps.year
    (('mine',), (1, 4, 4), 2021)
    """

    year: int
    arrays: Mapping[str, MapArray]
    methods: tuple[str, ...]
    fire_id: NDArray[np.str_] | None
    date: NDArray[np.str_] | None
    source: str
    size: NDArray[np.int64] | None = None
    """Rows and columns of each image; None where all are as large as the arrays."""
    file: MapsFile | None = None
    """What the maps were opened from."""
    _open_files: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Any],
        *,
        year: int | None = None,
        source: str = "predicted maps",
        values: bool = True,
    ) -> "PredictedMaps":
        """Check arrays named as in the file; `source` is what error messages call them.

        Without `values` no map is read, and its values are left to be checked by whoever does.
        """
        known = {name: _as_array(array) for name, array in arrays.items()}
        if year is None:
            year = stored_year(known.get("year"), source)
        known.pop("year", None)
        methods = check_names(known, source)
        labels = {name: check_labels(known, name, source) for name in LABELS}
        size = check_size(known, source)
        maps = {name: array for name, array in known.items() if name not in (*LABELS, "size")}
        checked = cls(year, maps, methods, labels["fire_id"], labels["date"], source, size)
        if values:
            check_values(maps, list(checked.blocks()), source)
            for images in checked.blocks() if size is not None else ():
                check_padding(checked.fire(images), checked.inside(images), images.start, source)
        return checked

    @property
    def shape(self) -> tuple[int, int, int]:
        """Images, rows, columns."""
        n, height, width = self.arrays["y"].shape
        return n, height, width

    @property
    def n_pixels(self) -> int:
        """Pixels of all images, without padding."""
        return int(np.prod(self.shape)) if self.size is None else int(self.size.prod(axis=1).sum())

    def blocks(self) -> Iterator[slice]:
        """Slices of a few images each, from first to last."""
        n = self.shape[0]
        return (slice(i, min(i + IMAGES_AT_ONCE, n)) for i in range(0, n, IMAGES_AT_ONCE))

    def fire(self, images: slice) -> NDArray[np.bool_]:
        """Where fire burnt."""
        return np.asarray(self.arrays["y"][images] != 0)

    def inside(self, images: slice) -> NDArray[np.bool_] | None:
        """Which pixels (n, H, W) belong to their images; None where there is no padding.

        >>> y = np.zeros((1, 2, 3), int); y[0, 0, 0] = 1
        >>> arrays = {"y": y, "mine_prob": y * 0.9, "mine_unc": y * 0.1, "size": [[1, 2]]}
        >>> PredictedMaps.from_arrays(arrays, year=2021).inside(slice(0, 1)).astype(int).tolist()
        [[[1, 1, 0], [0, 0, 0]]]
        """
        _, height, width = self.shape
        if self.size is None or (self.size[images] == (height, width)).all():
            return None
        rows, columns = self.size[images].T[..., None]
        return np.asarray((np.arange(height) < rows)[:, :, None] & (np.arange(width) < columns)[:, None, :])

    def prob(self, method: str, images: slice) -> NDArray[np.floating[Any]]:
        """A method's fire probability."""
        return _native(self.arrays[f"{method}_prob"][images])

    def unc(self, method: str, images: slice) -> NDArray[np.floating[Any]]:
        """A method's uncertainty."""
        return _native(self.arrays[f"{method}_unc"][images])

    @property
    def sampled(self) -> tuple[str, ...]:
        """Methods that come with samples."""
        return tuple(method for method in self.methods if f"{method}_samples" in self.arrays)

    def samples(self, method: str, images: slice) -> NDArray[Any]:
        """A method's draws (n, k, H, W)."""
        return _native(self.arrays[f"{method}_samples"][images])

    def close(self) -> None:
        """Close the file behind the maps, if there is one."""
        self._open_files.close()

    def __enter__(self) -> "PredictedMaps":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_maps(path: Path | str, *, values: bool = True) -> PredictedMaps:
    """Open and check a predicted-maps file; a large one is read in slices and stays open.

    Without `values` names, shapes and labels alone are read and checked, and the values left to whoever reads them.
    """
    path = Path(path)
    if not path.is_file():
        raise PredictionsError(f"{path}: no such file; give predictions_YEAR.npz or an HDF5 file that exists")
    file = MapsFile.at(path)  # as it was before anything was read of it
    with ExitStack() as files:
        try:
            arrays = _open_arrays(path, files)
            if values and sum(_n_bytes(array) for array in arrays.values()) <= _IN_MEMORY_BYTES:
                arrays = {name: array[:] if array.shape else array for name, array in arrays.items()}
            maps = PredictedMaps.from_arrays(
                arrays, year=None if "year" in arrays else year_of_name(path), source=str(path), values=values
            )
        except _DAMAGED as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise PredictionsError(f"{path}: truncated or damaged ({reason}); write it again") from None
        return replace(maps, file=file, _open_files=files.pop_all())


def write_maps(path: Path | str, maps: PredictedMaps) -> None:
    """Write maps as npz, or as HDF5 where the suffix is .h5 or .hdf5; whole or not at all.

    Read and written block by block: maps of a file too large for memory can be written to another.
    """
    path = Path(path)
    if path.suffix not in (".npz", ".h5", ".hdf5"):
        raise PredictionsError(f"{path}: unknown suffix {path.suffix!r}; name the file .npz, .h5 or .hdf5")
    labels = {"fire_id": maps.fire_id, "date": maps.date, "size": maps.size, "year": np.array(maps.year)}
    extras = {name: label for name, label in labels.items() if label is not None}
    with atomic_path(path) as beside:
        if path.suffix == ".npz":
            with zipfile.ZipFile(beside, "w") as archive:
                for name, array in maps.arrays.items():
                    blocks = (array[images] for images in maps.blocks())
                    write_npz_array(archive, name, array.shape, array.dtype, blocks)
                for name, label in extras.items():
                    write_npz_array(archive, name, label.shape, label.dtype, [label])
            return
        with h5py.File(beside, "w", track_order=True, userblock_size=USER_BLOCK) as store:
            for name, array in maps.arrays.items():
                # whole images are read; gzip is in every build of HDF5, and its lowest level the fastest
                packed = {"chunks": (1, *array.shape[1:]), "compression": "gzip", "compression_opts": 1}
                dataset = store.create_dataset(name, array.shape, array.dtype, shuffle=True, **packed)
                for images in maps.blocks():
                    dataset[images] = array[images]
            for name, label in extras.items():
                text = label.dtype.kind == "U"
                store[name] = label.astype(h5py.string_dtype()) if text else label
        with beside.open("r+b") as content:
            content.write(UNSEALED.encode())
        seal(beside)


def _open_arrays(path: Path, files: ExitStack) -> dict[str, Any]:
    """Every array of the file by name, not yet read; scalars and labels are."""
    with path.open("rb") as stream:
        is_zip = stream.read(2) == b"PK"
    if is_zip:
        return open_npz_arrays(path, files)
    if not h5py.is_hdf5(path):
        raise PredictionsError(f"{path}: neither npz nor HDF5; write it with numpy.savez or h5py")
    return open_hdf5_arrays(path, files)


def _as_array(array: Any) -> Any:
    """As it is where it can be sliced and asked for its shape, as a numpy array otherwise."""
    return array if hasattr(array, "shape") and hasattr(array, "dtype") else np.asarray(array)


def _native(block: NDArray[Any]) -> NDArray[Any]:
    return block.astype(block.dtype.newbyteorder("="), copy=False)


def _n_bytes(array: Any) -> int:
    return int(np.prod(array.shape)) * int(array.dtype.itemsize)

"""Arrays of an npz file read and written slice by slice, for what does not fit in memory."""

import zipfile
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NpzArray", "write_npz_array"]

_READ_BYTES = 1 << 18


class NpzArray:
    """One array of an open npz file, read in slices along its first axis.

    Made to be read from front to back: going on costs nothing, going back starts the array again.
    """

    def __init__(self, archive: zipfile.ZipFile, member: str) -> None:
        self._archive, self._member = archive, member
        self._stream: IO[bytes] | None = None
        self._row = 0
        with archive.open(member) as stream:
            self.shape, self.by_columns, self.dtype = _read_header(stream)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        if self.by_columns:  # rows lie scattered over the whole array
            with self._archive.open(self._member) as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False)[start:stop])
        if self._stream is None or start < self._row:
            self.close()
            self._stream = self._archive.open(self._member)
            _read_header(self._stream)
            self._row = 0
        row_bytes = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        for _ in range(self._row, start):
            self._stream.read(row_bytes)
        values = np.empty((stop - start, *self.shape[1:]), self.dtype)
        _read_into(self._stream, values)
        self._row = stop
        return values

    def close(self) -> None:
        """Let go of the place in the file."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None


def write_npz_array(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[NDArray[Any]]
) -> None:
    """Add one array to an npz file from blocks along its first axis."""
    # a fixed time stamp: the same maps make the same bytes
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=dtype).tobytes())


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _read_into(stream: IO[bytes], values: NDArray[Any]) -> None:
    """Fill an array in small steps: zipfile copies what it reads, which is free only in the cache."""
    view = values.reshape(-1).view(np.uint8)
    filled = 0
    while filled < view.size:
        content = stream.read(min(_READ_BYTES, view.size - filled))
        if not content:
            raise EOFError("an array ends before its last row")
        view[filled : filled + len(content)] = np.frombuffer(content, np.uint8)
        filled += len(content)

"""Arrays of an npz file read and written slice by slice, for what does not fit in memory."""

import math
import zipfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fcer.errors import PredictionsError
from fcer.runtime.files import could_hold
from fcer.runtime.npy_header import read_npy_header

__all__ = ["NpzArray", "open_npz_arrays", "write_npz_array"]

_READ_BYTES = 1 << 18
_ENCRYPTED = 1  # among the flags of a zip file's member


class NpzArray:
    """One array of an open npz file, read in slices along its first axis.

    Made to be read from front to back: going on costs nothing, going back starts the array again.
    """

    def __init__(self, archive: zipfile.ZipFile, member: str) -> None:
        self._archive, self._member = archive, member
        self._stream: IO[bytes] | None = None
        self._row = 0
        with archive.open(member) as stream:
            self.shape, self.by_columns, self.dtype = read_npy_header(stream)
            follow = archive.getinfo(member).file_size - stream.tell()
        promised = math.prod(self.shape) * self.dtype.itemsize
        # nothing is allocated on the word of a header
        if min(self.shape, default=0) < 0 or (promised != follow and not self.dtype.hasobject):
            kind = f"{str(self.dtype)[:60]} of shape {str(self.shape)[:60]}"
            raise ValueError(f"{member[:60]} should be {kind}, but {follow} bytes follow")

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        if self.by_columns:  # rows lie scattered over the whole array
            return np.asarray(self.whole()[start:stop])
        if self._stream is None or start < self._row:
            self.close()
            self._stream = self._archive.open(self._member)
            read_npy_header(self._stream)
            self._row = 0
        row_bytes = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        for _ in range(self._row, start):
            self._stream.read(row_bytes)
        values = np.empty((stop - start, *self.shape[1:]), self.dtype)
        _read_into(self._stream, values)
        self._row = stop
        return values

    def whole(self) -> NDArray[Any]:
        """All of it."""
        with self._archive.open(self._member) as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

    def close(self) -> None:
        """Let go of the place in the file."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None


def open_npz_arrays(path: Path, files: ExitStack) -> dict[str, Any]:
    """Every array of the file by name; maps are not yet read, labels and single numbers are."""
    archive = files.enter_context(zipfile.ZipFile(path))
    members = archive.infolist()
    twice = [name for name, count in Counter(member.filename for member in members).items() if count > 1]
    if twice:
        raise PredictionsError(f"{path}: {twice[0]} is in it more than once; write each array once")
    for member in members:
        if member.flag_bits & _ENCRYPTED:
            raise PredictionsError(f"{path}: it is encrypted; write it with numpy.savez")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise PredictionsError(f"{path}: compressed as numpy never does; write it with numpy.savez_compressed")
    if not could_hold(path.stat().st_size, sum(member.file_size for member in members)):
        raise PredictionsError(f"{path}: it says that it holds far more than its bytes can; write it again")
    arrays: dict[str, Any] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        array = NpzArray(archive, member.filename)
        files.callback(array.close)
        if array.dtype.hasobject:
            raise PredictionsError(
                f"{path}: {name} holds Python objects, which are never loaded; store numbers or text"
            )
        arrays[name] = array if len(array.shape) > 1 else array.whole()
    return arrays


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

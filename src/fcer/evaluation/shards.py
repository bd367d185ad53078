"""A year's maps in shards of images: how they are cut, opened wherever a shard is worked on, read and checked.

The cut depends on the maps alone, never on who works on them. A worker opens a file itself and keeps it open for its
next shard. Of HDF5 it reads its own images only; through npz it reads from front to back, past the shards of others.
"""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray
from fcer.errors import PredictionsError
from fcer.maps.checks import check_block, check_padding
from fcer.maps.file_identity import MapsFile
from fcer.maps.predicted_maps import IMAGES_AT_ONCE, PredictedMaps, open_maps

__all__ = ["Block", "Shard", "close_opened", "cut", "read", "read_whole"]

_IMAGES = 256
_PIXELS = 1 << 22
"""A shard has at most so many of both, and one image at least."""

_DAMAGED = (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Shard:
    """Some consecutive images of a year; `images` counts in what `maps` are, `first` is the first one's place."""

    maps: PredictedMaps | MapsFile
    images: slice
    first: int

    def __str__(self) -> str:
        source = self.maps.source if isinstance(self.maps, PredictedMaps) else self.maps
        return f"{source}, images {self.place.start} to {self.place.stop - 1}"

    @property
    def n_images(self) -> int:
        """How many there are."""
        return int(self.images.stop - self.images.start)

    @property
    def place(self) -> slice:
        """Where they are in the year."""
        return slice(self.first, self.first + self.n_images)


@dataclass(frozen=True)
class Block:
    """A few images of a shard, checked; `images` counts within the shard."""

    images: slice
    burnt: BoolArray
    inside: BoolArray | None
    prob: dict[str, FloatArray]
    unc: dict[str, FloatArray]


def cut(maps: PredictedMaps, *, travel: bool = True) -> list[Shard]:
    """All images of a year in shards, from first to last; those that are to `travel` bring what a worker needs."""
    n, height, width = maps.shape
    step = max(1, min(_IMAGES, _PIXELS // (height * width)))
    parts = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    return [_shard(maps, images) if travel else Shard(maps, images, images.start) for images in parts]


def _shard(maps: PredictedMaps, images: slice) -> Shard:
    if maps.file is not None:
        return Shard(maps.file, images, images.start)
    if not all(isinstance(array, np.ndarray) for array in maps.arrays.values()):
        return Shard(maps, images, images.start)
    # what is in memory travels with its shard, and without the rest
    arrays = {name: array[images] for name, array in maps.arrays.items()}
    size = None if maps.size is None else maps.size[images]
    own = PredictedMaps(maps.year, arrays, maps.methods, None, None, maps.source, size)
    return Shard(own, slice(0, images.stop - images.start), images.start)


def read(shard: Shard, *, prob: Sequence[str], unc: Sequence[str] = (), again: bool = False) -> Iterator[Block]:
    """The shard block by block: what burnt, and some methods' probability and uncertainty.

    Each value is checked, unless it is read `again`: uncertainties alone are not there the first time.
    """
    maps = shard.maps if isinstance(shard.maps, PredictedMaps) else _open(shard.maps)
    names = ["y", *(f"{method}_prob" for method in prob), *(f"{method}_unc" for method in unc)]
    where = str(shard)
    for start in range(0, shard.n_images, IMAGES_AT_ONCE):
        here = slice(start, min(start + IMAGES_AT_ONCE, shard.n_images))
        images = slice(shard.images.start + here.start, shard.images.start + here.stop)
        arrays = _read(maps, names, images, where, again)
        inside = maps.inside(images)
        burnt = arrays["y"] != 0
        if not again:
            check_padding(burnt, inside, shard.first + start, maps.source)
        yield Block(
            here,
            burnt,
            inside,
            {method: arrays[f"{method}_prob"] for method in prob},
            {method: arrays[f"{method}_unc"] for method in unc},
        )


def read_whole(maps: PredictedMaps) -> dict[str, np.ndarray[Any, Any]]:
    """All maps, in memory and not yet checked."""
    with _damage_named(maps.source):
        return {name: np.asarray(array[:]) for name, array in maps.arrays.items()}


@contextmanager
def _damage_named(where: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PredictionsError(f"{where}: truncated or damaged ({reason}); write it again") from None


def _read(
    maps: PredictedMaps, names: list[str], images: slice, where: str, again: bool
) -> dict[str, np.ndarray[Any, Any]]:
    with _damage_named(where):
        arrays = {name: np.ascontiguousarray(maps.arrays[name][images]) for name in names}
    for name, array in arrays.items():
        if not again or name.endswith("_unc"):
            check_block(array, name, where)
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}


class _Opened:
    """The file that this process has open for its shards: the last one that it was asked for."""

    file: MapsFile | None = None
    maps: PredictedMaps | None = None


def _open(file: MapsFile) -> PredictedMaps:
    """Opened at the first shard. Shards of two files of one name must not be added up."""
    if MapsFile.at(file.path) != file:
        raise PredictionsError(f"{file}: it was written anew while it was being evaluated; evaluate it again")
    if _Opened.maps is None or _Opened.file != file:
        close_opened()
        _Opened.maps, _Opened.file = open_maps(file.path, values=False), file
    return _Opened.maps


def close_opened() -> None:
    """Let go of the file that this process has open for its shards, if there is one."""
    if _Opened.maps is not None:
        _Opened.maps.close()
    _Opened.file = _Opened.maps = None

"""Arrays of an HDF5 file of predicted maps, read in slices."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fcer.data.hdf5_safety import NotInFile, own_array
from fcer.errors import PredictionsError
from fcer.runtime.checksums import Damaged, check_once

__all__ = ["USER_BLOCK", "open_hdf5_arrays"]

USER_BLOCK = 512
"""Bytes in front of what HDF5 reads: the fewest that it allows."""


class HDF5Array:
    """Maps of an open HDF5 file; whatever HDF5 raises where bytes are damaged is an OSError."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def __getitem__(self, images: slice) -> NDArray[Any]:
        try:
            return np.asarray(self._dataset[images])
        except (RuntimeError, TypeError, KeyError) as error:
            raise OSError(str(error)) from error


def open_hdf5_arrays(path: Path, files: ExitStack) -> dict[str, Any]:
    """Every array at the top of the file by name; maps are not yet read, labels and single numbers are."""
    store = files.enter_context(h5py.File(path))
    if store.userblock_size:  # ours have their checksum in it; npz files have checksums anyway
        try:
            check_once(path)
        except Damaged as problem:
            raise PredictionsError(f"{problem}; write it again") from None
    arrays: dict[str, Any] = {"year": np.array(store.attrs["year"])} if "year" in store.attrs else {}
    for name in store:
        try:
            dataset = own_array(store, name)
        except NotInFile as problem:
            remedy = "store all arrays at the top, with their numbers in this file"
            raise PredictionsError(f"{path}: {name} {problem}; {remedy}") from None
        if dataset.dtype.kind == "O":  # text of any length
            arrays[name] = _texts(path, name, dataset)
        else:
            arrays[name] = HDF5Array(dataset) if dataset.ndim > 1 else np.asarray(dataset[()])
    return arrays


def _texts(path: Path, name: str, dataset: Any) -> NDArray[np.str_]:
    try:
        return np.asarray(dataset.asstr("utf-8")[()], dtype=str)
    except UnicodeDecodeError:
        raise PredictionsError(f"{path}: {name} is not text in UTF-8; write it so") from None

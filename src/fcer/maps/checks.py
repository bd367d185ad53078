"""What a predicted-maps file must be, and the sentence for each way to fall short of it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.errors import PredictionsError

__all__ = [
    "LABELS",
    "check_block",
    "check_labels",
    "check_names",
    "check_padding",
    "check_size",
    "check_values",
    "stored_year",
    "year_of_name",
]

LABELS = ("fire_id", "date")
"""Optional arrays with one entry for each image."""

_HALF_ONE = np.float16(1).view(np.uint16)


def year_of_name(path: Path) -> int:
    """The one number of four digits in the file's name."""
    years = re.findall(r"(?<!\d)\d{4}(?!\d)", path.stem)
    if len(years) != 1:
        raise PredictionsError(f"{path}: year unknown; add an array year, or name it predictions_YEAR{path.suffix}")
    return int(years[0])


def stored_year(year: Any, source: str) -> int:
    """The year that the file says it is."""
    if year is None:
        raise PredictionsError(f"{source}: year unknown; add an array year")
    years = np.unique(np.asarray(year))
    if years.size != 1 or years.dtype.kind not in "iuf" or not 1 <= years[0] <= 9999 or years[0] % 1:
        raise PredictionsError(f"{source}: year is not one whole number from 1 to 9999; write one file for each year")
    return int(years[0])


def check_names(arrays: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """The methods, in the order of their first arrays; names and shapes fit together."""
    if "y" not in arrays:
        raise PredictionsError(f"{source}: no array y; add y (images, rows, columns) with 1 where fire burnt")
    found: dict[str, set[str]] = {}
    for name in arrays:
        match = re.fullmatch(r"(.+)_(prob|unc|samples)", name)
        if match:
            found.setdefault(match[1], set()).add(match[2])
        elif name not in ("y", "size", *LABELS):
            raise PredictionsError(
                f"{source}: no method claims the array {name}; "
                "name arrays y, METHOD_prob, METHOD_unc, METHOD_samples, fire_id, date, size or year"
            )
    if not found:
        raise PredictionsError(f"{source}: no method; add METHOD_prob and METHOD_unc")
    for method, kinds in found.items():
        for there, missing in (("prob", "unc"), ("unc", "prob"), ("samples", "prob")):
            if there in kinds and missing not in kinds:
                raise PredictionsError(
                    f"{source}: {method}_{there} has no {method}_{missing} beside it; add {method}_{missing}"
                )
    shape = tuple(arrays["y"].shape)
    if len(shape) != 3 or 0 in shape:
        raise PredictionsError(f"{source}: y has shape {shape}; give it (images, rows, columns)")
    for name in (f"{method}_{kind}" for method in found for kind in ("prob", "unc")):
        if tuple(arrays[name].shape) != shape:
            raise PredictionsError(
                f"{source}: {name} has shape {tuple(arrays[name].shape)}, y has {shape}; make them the same"
            )
    for name in (f"{method}_samples" for method, kinds in found.items() if "samples" in kinds):
        drawn = tuple(arrays[name].shape)
        if len(drawn) != 4 or drawn[1] < 2 or (drawn[0], *drawn[2:]) != shape:
            raise PredictionsError(
                f"{source}: {name} has shape {drawn}, y has {shape}; give it (images, samples, rows, columns) with two "
                "samples of each image or more"
            )
    return tuple(found)


def check_labels(arrays: Mapping[str, Any], name: str, source: str) -> NDArray[np.str_] | None:
    """One text for each image, or None where the file has none."""
    if name not in arrays:
        return None
    shape, n_images = tuple(arrays[name].shape), arrays["y"].shape[0]
    if shape != (n_images,):
        raise PredictionsError(f"{source}: {name} has shape {shape}; give one for each of {n_images} images")
    labels = np.asarray(arrays[name])
    if labels.dtype.kind not in "biufSUM":
        raise PredictionsError(f"{source}: {name} holds {str(labels.dtype)[:60]}; write it as text or numbers")
    try:
        return np.char.decode(labels, "utf-8") if labels.dtype.kind == "S" else labels.astype(str)
    except UnicodeDecodeError:
        raise PredictionsError(f"{source}: {name} is not text in UTF-8; write it so") from None


def check_size(arrays: Mapping[str, Any], source: str) -> NDArray[np.int64] | None:
    """Rows and columns of each image (N, 2), or None where the file has none."""
    if "size" not in arrays:
        return None
    n_images, height, width = arrays["y"].shape
    shape = tuple(arrays["size"].shape)
    if shape != (n_images, 2):
        raise PredictionsError(
            f"{source}: size has shape {shape}; give rows and columns of each image, {(n_images, 2)}"
        )
    size = np.asarray(arrays["size"][:])
    if size.dtype.kind not in "iuf" or (size != np.floor(size)).any():
        raise PredictionsError(f"{source}: size is not in whole numbers; give rows and columns in pixels")
    beyond = np.flatnonzero(((size < 1) | (size > (height, width))).any(axis=1))
    if beyond.size:
        rows, columns = size[beyond[0]]
        raise PredictionsError(
            f"{source}: size says {rows:g} x {columns:g} px of image {beyond[0]}; "
            f"give rows from 1 to {height} and columns from 1 to {width}"
        )
    return size.astype(np.int64)


def check_padding(fire: NDArray[np.bool_], inside: NDArray[np.bool_] | None, first: int, source: str) -> None:
    """No fire in the padding of a block of images, the first of which is image `first` of the file."""
    if inside is None:
        return
    outside = np.flatnonzero((fire & ~inside).any(axis=(1, 2)))
    if outside.size:
        raise PredictionsError(
            f"{source}: y has fire in image {first + outside[0]} beyond its size; write 0 there, or correct size"
        )


def check_values(arrays: Mapping[str, Any], blocks: Sequence[slice], source: str) -> None:
    """Every value of every map, in one pass over each array; fire somewhere."""
    any_fire = False
    for name, array in arrays.items():
        for images in blocks:
            any_fire |= check_block(array[images], name, source)
    if not any_fire:
        raise PredictionsError(f"{source}: no image has fire; FCER needs fire in y")


def check_block(block: NDArray[Any], name: str, source: str) -> bool:
    """Every value of some images of one array; whether there is fire in them, which only `y` can say."""
    kinds = "biuf" if name == "y" or name.endswith("_samples") else "f"
    if block.dtype.kind not in kinds:
        raise PredictionsError(f"{source}: {name} holds {block.dtype}; write it as numbers, maps as floats")
    if name == "y":
        return _check_fire(block, source)
    _check_unit_interval(block, name, source)
    return False


def _check_fire(block: NDArray[Any], source: str) -> bool:
    """Whether the block has fire."""
    fire = block == 1
    other = ~fire & (block != 0)
    if other.any():
        raise PredictionsError(f"{source}: y holds {block[other][0]}; write 1 where fire burnt and 0 elsewhere")
    return bool(fire.any())


def _check_unit_interval(block: NDArray[Any], name: str, source: str) -> None:
    if block.dtype == np.float16 and block.view(np.uint16).max() <= _HALF_ONE:
        return  # numbers of half precision are in the order of their bits, which compare far faster
    low, high = block.min(), block.max()
    if np.isnan(low):
        raise PredictionsError(f"{source}: {name} holds NaN; give every pixel a value from 0 to 1")
    if low < 0 or high > 1:
        worst = low if low < 0 else high
        raise PredictionsError(f"{source}: {name} holds {worst:g}; give every pixel a value from 0 to 1")

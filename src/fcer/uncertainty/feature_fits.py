"""What methods have learnt from the training years' features: a file in the student's folder, written with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from fcer.errors import CheckpointError, ConfigError
from fcer.models.headers import check_bytes, opened, parse_header, save_sealed
from fcer.uncertainty.predictors import Predictors

__all__ = ["check_fits", "fits_file", "load_fits", "save_fits"]


@dataclass(frozen=True)
class _Fits:
    """What the file says of itself."""

    student: str
    """The key of the student whose it is."""


def fits_file(folder: Path) -> Path:
    """Where it lies in a student's folder."""
    return folder / "feature_fits.safetensors"


def save_fits(folder: Path, key: str, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors for the student of this key."""
    save_sealed(fits_file(folder), {name: value.contiguous() for name, value in tensors.items()}, {"student": key})


def check_fits(name: str, predictors: Predictors) -> None:
    """Refuse a method that has nothing to go by."""
    student = predictors.student
    if student is None or not student.head.frozen or not fits_file(student.folder).exists():
        raise ConfigError(
            f"methods: {name} is fitted with a student on its frozen backbone, and there is none; add student to "
            "--methods with --freeze true, or leave it out"
        )


def load_fits(predictors: Predictors) -> dict[str, Tensor]:
    """The tensors of the predictors' student, by name."""
    assert predictors.student is not None
    return _read(predictors.student.folder, predictors.student.head.key)


@lru_cache(maxsize=4)
def _read(folder: Path, key: str) -> dict[str, Tensor]:
    path = fits_file(folder)
    check_bytes(path)
    with opened(path) as file:
        if parse_header(path, file.metadata(), _Fits, written_by="fcer distill").student != key:
            raise CheckpointError(f"{path}: not of the student beside it; remove the folder, and it is distilled again")
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)

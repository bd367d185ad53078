"""What methods have learnt from the training years' features: a file in the student's folder, written with it."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from fcer.errors import CheckpointError, ConfigError
from fcer.models.headers import opened
from fcer.runtime.files import atomic_path
from fcer.uncertainty.predictors import Predictors

__all__ = ["check_fits", "fits_file", "load_fits", "save_fits"]

_KEY = "student"
"""Under which name the file says whose it is."""


def fits_file(folder: Path) -> Path:
    """Where it lies in a student's folder."""
    return folder / "feature_fits.safetensors"


def save_fits(folder: Path, key: str, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors for the student of this key."""
    with atomic_path(fits_file(folder)) as partial:
        save_file({name: value.contiguous() for name, value in tensors.items()}, partial, metadata={_KEY: key})


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
    with opened(path) as file:
        if (file.metadata() or {}).get(_KEY) != key:
            raise CheckpointError(f"{path}: not of the student beside it; remove the folder, and it is distilled again")
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)

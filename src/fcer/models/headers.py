"""JSON headers of safetensors files, every type checked, since a file from elsewhere can hold anything."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fcer.config.bounded import parse_json
from fcer.config.conversion import filled
from fcer.errors import CheckpointError
from fcer.models.weights import unreadable
from fcer.runtime.checksums import UNSEALED, Damaged, check_once, is_seal, seal
from fcer.runtime.files import atomic_path

__all__ = ["HEADER", "check_bytes", "opened", "parse_header", "save_sealed"]

HEADER = "fcer"
"""Under which name the header stands in the file's metadata."""

_CHECKSUM = "checksum"
"""The header's field that seals the file."""

T = TypeVar("T")


def save_sealed(path: Path, weights: dict[str, torch.Tensor], header: Mapping[str, Any]) -> None:
    """Write weights under a header that also holds the checksum of the file; whole or not at all."""
    with atomic_path(path) as partial:
        content = json.dumps({**header, _CHECKSUM: UNSEALED}, allow_nan=False)
        save_file(weights, partial, metadata={HEADER: content})
        seal(partial)


def check_bytes(path: Path) -> None:
    """A CheckpointError where bytes have changed since the file was written; files without a checksum pass."""
    try:
        check_once(path)
    except Damaged as problem:
        raise CheckpointError(f"{problem}; copy or train it again") from None


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The file open for safetensors, which checks on the way that no byte of it is missing."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError:
        raise CheckpointError(f"{path}: not a safetensors file, or cut short; copy or train it again") from None
    except OSError as error:
        raise unreadable(path, error) from None


def parse_header(path: Path, metadata: dict[str, str] | None, cls: type[T], *, written_by: str) -> T:
    """The header as an object of `cls`; fields with a default are newer than some files and may be missing."""
    content = (metadata or {}).get(HEADER)
    if content is None:
        raise CheckpointError(
            f"{path}: its header does not say what the weights are; give a file that `{written_by}` wrote"
        )
    try:
        values = parse_json(content)
        if not isinstance(values, dict):
            raise ValueError("it is not an object")
        if (sealed := values.pop(_CHECKSUM, None)) is not None and not is_seal(sealed):
            raise ValueError("its checksum is damaged")
        return filled(cls, values)
    except ValueError as error:
        raise CheckpointError(
            f"{path}: its header cannot be used ({error}); train it again with this version of fcer"
        ) from None

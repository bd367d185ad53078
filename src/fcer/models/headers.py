"""JSON headers of safetensors files, every type checked, since a file from elsewhere can hold anything."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open

from fcer.config.bounded import parse_json
from fcer.config.conversion import filled
from fcer.errors import CheckpointError
from fcer.models.weights import unreadable

__all__ = ["HEADER", "opened", "parse_header"]

HEADER = "fcer"
"""Under which name the header stands in the file's metadata."""

T = TypeVar("T")


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
        return filled(cls, values)
    except ValueError as error:
        raise CheckpointError(
            f"{path}: its header cannot be used ({error}); train it again with this version of fcer"
        ) from None

"""JSON headers of safetensors files, every type checked, since a file from elsewhere can hold anything."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open

from fcer.errors import CheckpointError
from fcer.models.weights import unreadable

__all__ = ["HEADER", "Reader", "integer", "number", "opened", "optional", "parse_header", "several", "text", "truth"]

HEADER = "fcer"
"""Under which name the header stands in the file's metadata."""

T = TypeVar("T")
Reader = Callable[[object], Any]


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


def parse_header(
    path: Path,
    metadata: dict[str, str] | None,
    make: Callable[..., T],
    readers: Mapping[str, Reader],
    *,
    written_by: str,
    absent: Mapping[str, object] | None = None,
) -> T:
    """What `make` makes of the header's fields; `absent` has the values of fields that older files lack."""
    content = (metadata or {}).get(HEADER)
    if content is None:
        raise CheckpointError(
            f"{path}: its header does not say what the weights are; give a file that `{written_by}` wrote"
        )
    try:
        values = json.loads(content)
        if not isinstance(values, dict):
            raise TypeError("it is not an object")
        values = {**(absent or {}), **values}
        wrong = sorted(values.keys() ^ readers.keys())
        if wrong:
            raise ValueError(f"{', '.join(wrong)} missing or unknown")
        return make(**{name: readers[name](value) for name, value in values.items()})
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: its header cannot be used ({error}); train it again with this version of fcer"
        ) from None


def integer(value: object) -> int:
    """A whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value


def number(value: object) -> float:
    """A number."""
    return value if isinstance(value, float) else float(integer(value))


def text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def truth(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def several(read: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    """A list of what `read` reads."""

    def read_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is not a list")
        return tuple(read(item) for item in value)

    return read_all


def optional(read: Callable[[object], T]) -> Callable[[object], T | None]:
    """What `read` reads, or nothing."""
    return lambda value: None if value is None else read(value)

"""One malformed input, made from nothing but a class, a seed and a number, and the command that meets it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["Case", "Maker", "damaged", "draw", "fresh"]


@dataclass(frozen=True)
class Case:
    """What was done to an input, and the command that is given it.

    It holds where the command ends with 2 and one line, or with 0: then the damage was harmless, or part of a
    dataset whose rest stays usable.
    """

    what: str
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    refuse: bool = False
    """Whether 0 would be wrong: the input reads another file, or its bytes are not those that were written."""
    ask: Callable[[], str] | None = None
    """Instead of a command: what was wrong with the answer to a request."""


Maker = Callable[[np.random.Generator, Path, Path], Case]
"""From random numbers, the folder of sound inputs, and an empty folder for this case."""


def draw(rng: np.random.Generator, choices: list) -> object:
    """One of several."""
    return choices[int(rng.integers(len(choices)))]


def damaged(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """A file's bytes after something happened to them, and what it was."""
    data, size = bytearray(content), len(content)
    # most of what a format says of itself stands at its ends
    place = int(draw(rng, [rng.integers(size), rng.integers(min(size, 600)), size - 1 - rng.integers(min(size, 600))]))
    length = int(rng.integers(1, 64))
    what = str(draw(rng, ["bits", "cut", "zeros", "noise", "removed", "repeated", "number", "swapped"]))
    if what == "bits":
        for at in (place, *rng.integers(size, size=int(rng.integers(3)))):
            data[at] ^= 1 << int(rng.integers(8))
    elif what == "cut":
        del data[place:]
    elif what == "zeros":
        data[place : place + length] = bytes(len(data[place : place + length]))
    elif what == "noise":
        data[place : place + length] = rng.bytes(len(data[place : place + length]))
    elif what == "removed":
        del data[place : place + length]
    elif what == "repeated":
        data[place:place] = data[place : place + length]
    elif what == "number":  # lengths and offsets are little-endian integers
        data[place : place + 4] = draw(rng, [b"\xff" * 4, b"\x00" * 4, b"\xff\xff\xff\x7f", b"\x01\x00\x00\x00"])
    else:
        other = int(rng.integers(size))
        data[place : place + length], data[other : other + length] = (
            data[other : other + length],
            data[place : place + length],
        )
    return bytes(data), f"{what} at {place} of {size}"


def fresh(source: Path, target: Path) -> Path:
    """A copy of a sound file or folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target))

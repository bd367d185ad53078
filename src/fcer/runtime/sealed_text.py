"""JSON and CSV files of our own that notice a flipped bit, and stay readable for everybody.

JSON holds a field `checksum` beside its content, over the whole file. CSV has a last column of that name, over the
column names and the row, so that a damaged row is told by its number. What versions before wrote without them is
read as it is.
"""

import csv
import io
import json
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fcer.errors import FcerWarning
from fcer.runtime.checksums import UNSEALED, Damaged, seal, verify
from fcer.runtime.csv_cells import table_text
from fcer.runtime.files import atomic_path

__all__ = ["is_readable", "read_sealed_csv", "read_sealed_json", "write_sealed_csv", "write_sealed_json"]

_CHECKSUM = "checksum"


def write_sealed_json(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps({_CHECKSUM: UNSEALED, **content}, indent=1) + "\n", encoding="utf-8")
        seal(partial)


def read_sealed_json(path: Path) -> Any:
    """The content without its checksum; a ValueError where it is no JSON, and as such Damaged where bytes changed."""
    sealed = verify(path)
    try:
        content = json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if isinstance(content, dict) and content.pop(_CHECKSUM, None) is not None and not sealed:
        raise Damaged(f"{path}: its checksum is damaged")
    return content


def write_sealed_csv(path: Path, table: pd.DataFrame) -> None:
    """Whole or not at all; no cell is a formula."""
    names, *rows = _parsed(table_text(table))
    checked = table.assign(**{_CHECKSUM: [_of_row(names, row) for row in rows]})
    with atomic_path(path) as partial:
        partial.write_text(table_text(checked), encoding="utf-8", newline="")


def read_sealed_csv(path: Path, **how: Any) -> pd.DataFrame:
    """The table without its checksums, read as pandas is told; a ValueError where it is none, or rows changed."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    names, *rows = _parsed(text) or [[]]
    sealed = names[-1:] == [_CHECKSUM]
    for number, row in enumerate(rows, start=1):
        fits = row[-1:] == [_of_row(names[:-1], row[:-1])]
        if sealed and not fits:
            raise Damaged(f"{path}: row {number} has changed since it was written")
        if fits and not sealed:
            raise Damaged(f"{path}: its column names have changed since it was written")
    if not sealed and any(_CHECKSUM in name for name in names):
        raise Damaged(f"{path}: its first line has changed since it was written")
    try:
        table: pd.DataFrame = pd.read_csv(io.StringIO(text), **how)
    except pd.errors.ParserError as error:
        raise ValueError(" ".join(str(error).split())) from None  # its lines would break a sentence
    return table.drop(columns=_CHECKSUM, errors="ignore")


def is_readable(path: Path, read: Callable[[Path], Any], *, needed: bool = True) -> bool:
    """Whether a file that can be made again is there and sound; one that is damaged is named.

    Where it is not `needed`, none at all is as good: versions before wrote none.
    """
    if not path.exists():
        return not needed
    try:
        read(path)
    except ValueError as problem:
        named = str(problem) if str(path) in str(problem) else f"{path}: cannot be read ({problem})"
        warnings.warn(f"{named}; made again", FcerWarning, stacklevel=2)
        return False
    return True


def _parsed(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _of_row(names: Sequence[str], row: Sequence[str]) -> str:
    return f"{zlib.crc32(json.dumps([names, row]).encode()):08x}"

"""Files of detections as NASA FIRMS offers them: CSV or JSON, plain, gzip or zip, read a piece at a time."""

import codecs
import gzip
import io
import itertools
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd

from fcer.data.detections.columns import REQUIRED, TEXTS, missing_columns, parsed
from fcer.data.detections.table import Detections, joined
from fcer.errors import DataError

__all__ = ["read_detections", "read_file"]

_ROWS = 100_000
"""Of a piece: what memory holds as text."""
_BLOCK = 1 << 20
_LONGEST_RECORD = 4 * _BLOCK
"""Characters of a detection in JSON, whose end is looked for again with each block."""
_AGAIN = "download it again"


def read_detections(files: Sequence[Path]) -> tuple[Detections, dict[str, int]]:
    """All detections of `files` in their order, and how many each holds."""
    tables = [read_file(path) for path in files]
    counts = {str(path): len(table) for path, table in zip(files, tables, strict=True)}
    if not any(counts.values()):
        raise DataError(f"{', '.join(counts)}: not a single detection; give files of days and places with fire")
    return joined(tables), counts


def read_file(path: Path) -> Detections:
    """One file's detections; a DataError says what is wrong with it, and where."""
    try:
        pieces = [piece for name, stream in _streams(path) for piece in _pieces(name, stream)]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give --detections a file as NASA FIRMS offers it") from None
    except IsADirectoryError:
        raise DataError(f"{path}: this is a folder; give --detections the files in it") from None
    except PermissionError:
        raise DataError(f"{path}: no permission to read it; run chmod +r on it or ask its owner") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile):
        raise DataError(f"{path}: the compressed file is cut or damaged; {_AGAIN}") from None
    except (RuntimeError, NotImplementedError) as error:  # of zip files that are encrypted, or compressed otherwise
        raise DataError(f"{path}: cannot be unpacked ({error}); unpack it yourself and give what is in it") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: this is no text; give a CSV or JSON file of detections") from None
    return joined(pieces or [_nothing()])


def _streams(path: Path) -> Iterator[tuple[str, Any]]:
    """What a file holds, unpacked: its contents decide, not its name."""
    with path.open("rb") as file:
        start = file.peek(4)[:4]
        if not start:
            raise DataError(f"{path}: the file is empty; {_AGAIN}")
        if start[:2] == b"\x1f\x8b":
            with gzip.open(file) as unpacked:
                yield str(path), unpacked
        elif start == b"PK\x03\x04":
            with zipfile.ZipFile(file) as archive:
                inside = [
                    n for n in archive.namelist() if n.lower().endswith((".csv", ".json")) and "__MACOSX" not in n
                ]
                if not inside:
                    raise DataError(f"{path}: no CSV or JSON file in it; {_AGAIN}")
                for name in inside:
                    with archive.open(name) as member:
                        yield f"{path}/{name}", member
        else:
            yield str(path), file


def _pieces(name: str, stream: Any) -> Iterator[Detections]:
    mark = stream.peek(64).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if mark == b"<":
        raise DataError(
            f"{name}: this is a web page, not detections; the link or key was perhaps refused: open the file in a "
            f"browser to see why, then {_AGAIN}"
        )
    if not mark:
        raise DataError(f"{name}: the file is empty; {_AGAIN}")
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        yield from _json_pieces(name, text) if mark in b"[{" else _csv_pieces(name, text)


def _csv_pieces(name: str, text: IO[str]) -> Iterator[Detections]:
    with _csv_errors(name):
        reader = pd.read_csv(
            text,
            chunksize=_ROWS,
            dtype=dict.fromkeys(TEXTS, "str"),
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
        )
        for frame in reader:
            first = int(frame.index[0]) if len(frame) else 0
            frame.columns = frame.columns.str.strip().str.lower()
            if wrong := missing_columns(name, list(frame.columns)):
                raise DataError(wrong)
            if len(frame):
                _refuse_cut(name, frame)
                yield parsed(frame, partial(_where, f"{name}, line", first + 2))


def _refuse_cut(name: str, frame: pd.DataFrame) -> None:
    """A file that was cut ends in a row that lacks its last values; one that holds none at all there is whole."""
    last = frame.iloc[:, -1]
    if pd.isna(last.iloc[-1]) and (len(frame) == 1 or last.notna().any()):
        raise DataError(f"{name}: the file is cut in the middle of its last line; {_AGAIN}")


@contextmanager
def _csv_errors(name: str) -> Iterator[None]:
    try:
        yield
    except pd.errors.EmptyDataError:
        raise DataError(f"{name}: the file is empty; {_AGAIN}") from None
    except pd.errors.ParserError as error:
        raise DataError(f"{name}: not a table of detections ({str(error).strip()}); {_AGAIN}") from None


def _json_pieces(name: str, text: IO[str]) -> Iterator[Detections]:
    records = _json_records(name, text)
    first = 1
    while piece := list(itertools.islice(records, _ROWS)):
        for k, record in enumerate(piece):
            if wrong := missing_columns(f"{name}, record {first + k}", list(record)):
                raise DataError(wrong)
        frame = pd.DataFrame.from_records(piece)
        for column in frame.columns.intersection(list(TEXTS)):
            frame[column] = frame[column].astype("str")
        yield parsed(frame, partial(_where, f"{name}, record", first))
        first += len(piece)


def _json_records(name: str, text: IO[str]) -> Iterator[dict[str, Any]]:
    """The objects of a JSON list one after the other, so that the list is never whole in memory."""
    decode = json.JSONDecoder().raw_decode
    buffer, at = text.read(_BLOCK).lstrip(), 1
    if not buffer.startswith("["):
        raise DataError(f"{name}: JSON, but no list of detections (it starts {buffer[:40]!r}); {_AGAIN}")
    while True:
        while buffer[at : at + 1] in tuple(" \t\r\n,"):
            at += 1
        if buffer[at : at + 1] == "]":
            return
        try:
            record, at = decode(buffer, at)
        except json.JSONDecodeError:
            added = text.read(_BLOCK)
            if not added:
                raise DataError(f"{name}: the file is cut or damaged: its list does not end; {_AGAIN}") from None
            buffer, at = buffer[at:] + added, 0
            if len(buffer) > _LONGEST_RECORD:
                raise DataError(f"{name}: one of its detections goes on for megabytes; {_AGAIN}") from None
            continue
        except RecursionError:
            raise DataError(f"{name}: JSON, but nested far deeper than detections are; {_AGAIN}") from None
        if not isinstance(record, dict):
            raise DataError(f"{name}: JSON, but {str(record)[:40]!r} in its list is no detection; {_AGAIN}")
        yield {str(key).lower(): value for key, value in record.items()}


def _where(what: str, first: int, k: int) -> str:
    return f"{what} {first + k}"


def _nothing() -> Detections:
    frame = pd.DataFrame({column: pd.Series([], dtype="str") for column in REQUIRED})
    return parsed(frame, str)

"""Files that notice a flipped bit: what is computed once and trusted later carries a checksum of its bytes.

CRC-32 finds every flipped bit and every burst of up to 32, and all but one in four thousand million of anything
else; it reads 2 GB/s where SHA-256 reads 1.3 and BLAKE2b 0.4. It finds damage, not forgery.

A format that has room for a text (a header, an attribute, a field) is sealed inside: whoever writes it puts
`UNSEALED` there, and `seal` overwrites it in place.
In a safetensors file that is a field of our own JSON header: texts of its metadata beside one another have no order,
and the same weights would make other bytes.
"""

import mmap
import os
import re
import warnings
import zlib
from pathlib import Path

from fcer.errors import FcerWarning

__all__ = ["UNSEALED", "Damaged", "check_once", "is_intact", "is_seal", "seal", "seal_text", "verify"]

_MARK = b"fcer-crc32:"
_DIGITS = 8
UNSEALED = (_MARK + b"-" * _DIGITS).decode()
"""What a file must hold once, as plain bytes, for `seal`."""

_SEAL = re.compile(re.escape(_MARK) + rb"([0-9a-f]{8}|-{8})")
_READ_BYTES = 1 << 20


class Damaged(ValueError):
    """A file's bytes are not those that were written."""


def seal(path: Path, crc: int | None = None) -> None:
    """Put the file's checksum in the place of `UNSEALED`; for a file that is not yet in use, such as a partial one.

    With `crc` it is of something else, such as of what a reader sees of the file.
    """
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        found = content.find(UNSEALED.encode())
        if found < 0:
            raise ValueError(f"{path}: no room for a checksum was left in it")
        place = found + len(_MARK)
        content[place : place + _DIGITS] = f"{_without(content, place) if crc is None else crc:08x}".encode()


def seal_text(crc: int) -> str:
    """What `seal` leaves in the file."""
    return f"{_MARK.decode()}{crc:08x}"


def is_seal(text: object) -> bool:
    """Whether a text is what `seal` leaves."""
    return isinstance(text, str) and _SEAL.fullmatch(text.encode()) is not None


def verify(path: Path) -> bool:
    """Whether the file is sealed and as it was then; False where it carries no seal, Damaged where bytes changed."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = _SEAL.search(content)
            if found is None:
                return False
            place, said = found.start(1), found[1].decode()
            actual = f"{_without(content, place):08x}"
    if said != actual:
        raise Damaged(f"{path}: its bytes have changed since it was written (checksum {actual}, not {said})")
    return True


def _without(content: mmap.mmap, place: int) -> int:
    """CRC-32 of everything, with the place of the checksum itself as it was before."""
    found = 0
    for start, stop in ((0, place), (place + _DIGITS, len(content))):
        for at in range(start, stop, _READ_BYTES):
            found = zlib.crc32(content[at : min(at + _READ_BYTES, stop)], found)
        if start == 0:
            found = zlib.crc32(b"-" * _DIGITS, found)
    return found


_known: dict[Path, tuple[int, ...]] = {}


def check_once(path: Path) -> None:
    """Damaged where the file is not as its seal says.

    Read once for each state of the file in this process: for what is opened again and again.
    """
    stat = path.stat()
    state = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if _known.get(path) != state:
        verify(path)
        _known[path] = state


def is_intact(path: Path) -> bool:
    """Whether a file that can be made again is there; one whose bytes have changed is named, and is to be."""
    if not path.exists():
        return False
    try:
        check_once(path)
    except Damaged as problem:
        warnings.warn(f"{problem}; made again", FcerWarning, stacklevel=2)
        return False
    return True

"""Which predicted-maps file it was: told from another of the same name that is written in its place."""

from pathlib import Path
from typing import NamedTuple

from fcer.errors import PredictionsError

__all__ = ["MapsFile"]


class MapsFile(NamedTuple):
    """A file as it was when it was opened."""

    path: Path
    size: int
    changed: int
    """When it last was, in nanoseconds."""

    @classmethod
    def at(cls, path: Path) -> "MapsFile":
        """The file that is there now."""
        try:
            found = path.stat()
        except OSError as error:
            raise PredictionsError(f"{path}: cannot be read ({error.strerror}); see that it is still there") from None
        return cls(path, found.st_size, found.st_mtime_ns)

    def __str__(self) -> str:
        return str(self.path)

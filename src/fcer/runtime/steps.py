"""What is computed once and found again, named by all that decides it: nothing stale or foreign is taken for it.

A step knows its schema (raised when the same inputs would give another result) and what else decides it. Its key stands
for both. Results lie in a place of the key's name, or, where the user chose the place, carry a note with the key.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fcer.runtime.files import write_text

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """One thing to compute.

    Attributes
    ----------
    schema:
        Raised when the same inputs would give another result, or one that is stored in another way.
    decided_by:
        Everything else that the result depends on, as JSON can say it.
    """

    schema: int
    decided_by: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """SHA-256 in hex: same key, same result.

        >>> Step(1, {"seed": 0, "width": 0.5}).key == Step(1, {"width": 0.5, "seed": 0}).key
        True
        """
        content = json.dumps({"schema": self.schema, **self.decided_by}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def home(self, folder: Path, label: str) -> Path:
        """A place in `folder` that no other result will ever have."""
        return folder / f"{label}-{self.key[:12]}"

    def is_at(self, file: Path) -> bool:
        """Whether the file is this step's result, and nobody has written another in its place."""
        note = _note(file)
        return file.exists() and note.exists() and _content(note) == self._described(file)

    def begin(self, file: Path) -> None:
        """What lies at `file` counts no longer."""
        _note(file).unlink(missing_ok=True)

    def finish(self, file: Path) -> None:
        """Note that `file` is this step's result."""
        write_text(_note(file), json.dumps(self._described(file)) + "\n")

    def _described(self, file: Path) -> dict[str, Any]:
        state = file.stat()
        return {"key": self.key, "file": [state.st_size, state.st_mtime_ns]}


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def _content(note: Path) -> Any:
    try:
        return json.loads(note.read_text())
    except ValueError:
        return None  # cut or damaged: the result is made again

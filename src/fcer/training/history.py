"""Every epoch of a finished training, beside its weights: what it scored, and how long it took."""

from collections.abc import Sequence
from pathlib import Path

from fcer.runtime.sealed_text import read_sealed_json, write_sealed_json
from fcer.training.epochs import EpochRecord

__all__ = ["history_of", "read_epochs", "write_history"]


def history_of(student: Path) -> Path:
    """Where the epochs of the student in a folder are written down."""
    return student / "history.json"


def write_history(path: Path, records: Sequence[EpochRecord]) -> None:
    """Whole or not at all."""
    rows = [{name: value for name, value in record._asdict().items() if value is not None} for record in records]
    write_sealed_json(path, {"epochs": rows})


def read_epochs(path: Path) -> list[EpochRecord]:
    """All epochs; a ValueError where they cannot be read, or bytes of the file have changed."""
    content = read_sealed_json(path)
    try:
        # versions before wrote a list alone
        return [EpochRecord(**row) for row in (content["epochs"] if isinstance(content, dict) else content)]
    except (TypeError, KeyError) as error:
        raise ValueError(f"it holds no epochs: {error}") from None

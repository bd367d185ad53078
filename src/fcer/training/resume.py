"""What a killed training goes on from: the state after its last complete epoch, in one file beside the checkpoint."""

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fcer.errors import FcerWarning
from fcer.runtime.checksums import UNSEALED, seal, verify
from fcer.runtime.files import atomic_path
from fcer.training.epochs import EpochRecord

__all__ = ["Resume", "read_resume", "resume_file", "write_resume"]


class Resume(NamedTuple):
    """A training after some epochs."""

    records: list[EpochRecord]
    learner: dict[str, Any]
    best: dict[str, Tensor]
    """The weights of the best epoch. The checkpoint itself appears at the end, so that its being there says "done"."""


def resume_file(path: Path) -> Path:
    """Where the state of the training that ends in `path` lies."""
    return path.with_suffix(".resume")


def write_resume(
    file: Path, key: str, records: Sequence[EpochRecord], learner: dict[str, Any], best: dict[str, Tensor]
) -> None:
    """Replace the state of the epoch before, whole or not at all."""
    content = {"key": key, "records": [tuple(record) for record in records], "learner": learner, "best": best}
    with atomic_path(file) as partial:
        torch.save(content, partial)
        with partial.open("ab") as stream:
            stream.write(UNSEALED.encode())  # what reads zip files looks for their end from behind
        seal(partial)


def read_resume(file: Path, key: str, *, warn: bool = True) -> Resume | None:
    """The state in `file` where it belongs to the training of this key; a warning where it does not."""
    if not file.exists():
        return None
    try:
        if not verify(file):
            raise ValueError("it carries no checksum")
        content = torch.load(file, map_location="cpu", weights_only=True)
        if content["key"] == key:
            records = [EpochRecord(*record) for record in content["records"]]
            return Resume(records, content["learner"], content["best"])
        reason = "is of a training with other settings or other data"
    except (OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, pickle.UnpicklingError):
        reason = "cannot be read"
    if warn:
        warnings.warn(f"{file}: it {reason} and is not used; training starts at the first epoch", FcerWarning, 2)
    return None

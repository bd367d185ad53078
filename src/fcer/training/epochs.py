"""What became of each epoch, and what follows from it: which is the best, and when to stop.

Each is a function of the epochs so far. There is no stopper whose state could be lost.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["EpochRecord", "OnEpoch", "best_epoch", "stalled"]


class EpochRecord(NamedTuple):
    """One epoch's outcome."""

    epoch: int
    """Counted from 1."""
    train_loss: float
    """Mean over the epoch's pixels, each under the weights of its own step."""
    val_loss: float
    """On the validation years; a head's on a fixed part of their pixels."""
    score: float
    """On the validation years, the higher the better: a member's AP, a student's AUROC near fire."""
    lr: float
    seconds: float


OnEpoch = Callable[[EpochRecord], None]
"""Told of each epoch; may raise to stop."""


def best_epoch(records: Sequence[EpochRecord]) -> int:
    """The epoch with the highest validation score; the first of equals."""
    return max(records, key=lambda record: (record.score, -record.epoch)).epoch


def stalled(records: Sequence[EpochRecord], patience: int) -> bool:
    """Whether the last `patience` epochs have all failed to better the score before them."""
    return bool(records) and records[-1].epoch - best_epoch(records) >= patience

"""How far training has come, and what follows from it: the next learning rate, the best epoch, when to stop.

Each is a function of the epochs so far. There is no scheduler or stopper whose state could be lost.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fcer.training.settings import MemberSettings

__all__ = ["EpochRecord", "best_epoch", "learning_rate", "stalled"]


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


def best_epoch(records: Sequence[EpochRecord]) -> int:
    """The epoch with the highest validation score; the first of equals."""
    return max(records, key=lambda record: (record.score, -record.epoch)).epoch


def stalled(records: Sequence[EpochRecord], patience: int) -> bool:
    """Whether the last `patience` epochs have all failed to better the score before them."""
    return bool(records) and records[-1].epoch - best_epoch(records) >= patience


def learning_rate(settings: MemberSettings, records: Sequence[EpochRecord]) -> float:
    """The learning rate of the epoch after `records`."""
    if settings.schedule == "cosine":
        return settings.lr * (1 + math.cos(math.pi * len(records) / settings.epochs)) / 2
    wait = max(1, settings.patience // 2)
    best, since, halvings = -math.inf, 0, 0
    for record in records:
        if record.score > best:
            best, since = record.score, 0
        else:
            since += 1
        if since == wait:
            since, halvings = 0, halvings + 1
    return settings.lr * 0.5**halvings

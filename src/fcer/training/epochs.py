"""What became of each epoch, and what follows from it: which is the best, and when to stop.

Each is a function of the epochs so far. There is no stopper whose state could be lost.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fcer.errors import FcerError

__all__ = ["EpochRecord", "OnEpoch", "Rank", "best_epoch", "by_score", "check_finite", "stalled", "still_rising"]


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
    val_ap: float | None = None
    """AP of a backbone that is trained together with its head; none elsewhere."""


def check_finite(what: str, kind: str, epoch: int, lr: float, *losses: float) -> None:
    """An error that says which learning rate, `head` or `member`, to lower once a loss is no number any more."""
    if not all(map(math.isfinite, losses)):
        raise FcerError(
            f"{what}: the loss is no longer finite in epoch {epoch} at a learning rate of {lr:.3g}; "
            f"start again with a lower --{kind}-lr"
        )


OnEpoch = Callable[[EpochRecord], None]
"""Told of each epoch; may raise to stop."""


Rank = Callable[[EpochRecord], tuple[float, ...]]
"""What epochs are compared by, the higher the better."""


def by_score(record: EpochRecord) -> tuple[float, ...]:
    """By the validation score alone."""
    return (record.score,)


def best_epoch(records: Sequence[EpochRecord], rank: Rank = by_score) -> int:
    """The epoch that ranks highest; the first of equals."""
    return max(records, key=lambda record: (rank(record), -record.epoch)).epoch


def stalled(records: Sequence[EpochRecord], patience: int, rank: Rank = by_score) -> bool:
    """Whether the last `patience` epochs have all failed to better those before them."""
    return bool(records) and records[-1].epoch - best_epoch(records, rank) >= patience


def still_rising(best: int, epochs: int) -> bool:
    """Whether the best epoch is among the last 5 % of all that were planned, so that more might be better still.

    Never where fewer than 20 epochs were planned: those are for trying something out.
    """
    return best > epochs - epochs // 20

"""The learning rate of each epoch, as a function of the epochs before it: no scheduler has a state to lose."""

import math
from collections.abc import Sequence

from fcer.training.epochs import EpochRecord
from fcer.training.head_settings import HeadSettings
from fcer.training.settings import MemberSettings

__all__ = ["head_learning_rate", "member_learning_rate"]


def head_learning_rate(settings: HeadSettings, epochs_done: int) -> float:
    """Polynomial decay to zero after the last epoch, by epoch.

    The paper says polynomial, and its code lowers the rate batch by batch. Both meet at the start of every epoch, and a
    fit that was killed goes on from the number of its epochs alone.
    """
    return float(settings.lr * (1 - epochs_done / settings.epochs) ** settings.power)


def member_learning_rate(settings: MemberSettings, records: Sequence[EpochRecord]) -> float:
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

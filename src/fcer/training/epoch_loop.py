"""The loop of every training: epochs until the last or until the score stalls, the best kept, any kill survived."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn, optim

from fcer.training.epochs import EpochRecord, OnEpoch, Rank, best_epoch, by_score, stalled
from fcer.training.resume import read_resume, write_resume

__all__ = ["BestEpoch", "Learns", "ModelLearner", "run_epochs", "set_learning_rate"]


class Learns(Protocol):
    """What is trained, and all that its next step depends on."""

    @property
    def trained(self) -> nn.Module:
        """The module whose weights are kept."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        ...


@dataclass(frozen=True)
class ModelLearner:
    """A module, its optimiser, and perhaps more that has a state."""

    name: str
    """Of the module, in the saved state."""
    trained: nn.Module
    optimizer: optim.Optimizer
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _parts(self) -> dict[str, Any]:
        return {self.name: self.trained, "optimizer": self.optimizer, **self.more}

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on."""
        return {name: part.state_dict() for name, part in self._parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        for name, part in self._parts.items():
            part.load_state_dict(state[name])


class BestEpoch(NamedTuple):
    """What `run_epochs` leaves."""

    records: list[EpochRecord]
    weights: dict[str, Tensor]
    """Of the best epoch."""


def run_epochs(
    learner: Learns,
    step: Callable[[list[EpochRecord]], EpochRecord],
    *,
    epochs: int,
    patience: int,
    resume: tuple[Path, str] | None,
    on_epoch: OnEpoch | None = None,
    rank: Rank = by_score,
    seconds_between_saves: float = 0.0,
    is_main: bool = True,
) -> BestEpoch:
    """Train until the last epoch, or until the score has not risen for `patience` epochs.

    Parameters
    ----------
    learner
        What `step` trains.
    step
        Trains and validates one epoch, given the records of those before.
    epochs, patience
        When to stop.
    resume
        A file to go on from after a kill, and the key of what is trained.
    on_epoch
        Called with each epoch's record once the epoch is safe on disk; after a kill with the earlier ones first.
    rank
        What the best epoch is chosen by.
    seconds_between_saves
        Epochs that end sooner after the last save are not saved.
    is_main
        Whether this process writes and warns: one of those that train together does.
    """
    records: list[EpochRecord] = []
    best: dict[str, Tensor] = {}
    if resume and (done := read_resume(*resume, warn=is_main)):
        learner.restore(done.learner)
        records, best = done.records, done.best
        if on_epoch:
            for record in records:
                on_epoch(record)
    saved = time.monotonic()
    while len(records) < epochs and not stalled(records, patience, rank):
        records.append(step(records))
        if best_epoch(records, rank) == records[-1].epoch:
            best = {name: value.cpu().clone() for name, value in learner.trained.state_dict().items()}
        if resume and is_main and time.monotonic() - saved >= seconds_between_saves:
            write_resume(*resume, records, learner.state(), best)
            saved = time.monotonic()
        if on_epoch:
            on_epoch(records[-1])
    return BestEpoch(records, best)


def set_learning_rate(optimizer: optim.Optimizer, lr: float) -> None:
    """Learn at this rate from here on."""
    for group in optimizer.param_groups:
        group["lr"] = lr

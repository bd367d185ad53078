"""Members trained on a cluster, each by one worker, to the very weights that they would get here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.runtime.parallel import map_tasks
from fcer.training.member import MemberResult, train_member
from fcer.training.settings import MemberSettings
from fcer.training.threads import with_threads_of_here

__all__ = ["MemberToTrain", "train_on_cluster"]


@dataclass(frozen=True)
class MemberToTrain:
    """All that `train_member` is told."""

    dataset: Dataset
    fold: Fold
    settings: MemberSettings
    path: Path

    def __str__(self) -> str:
        return str(self.path)


def train_on_cluster(members: Sequence[MemberToTrain]) -> Iterator[tuple[Path, MemberResult]]:
    """What became of each, by its checkpoint, as it is done."""
    gpu = any(member.settings.device == "cuda" for member in members)
    done = map_tasks(with_threads_of_here(_train), members, workers=1, label="train", unit="member", gpu=gpu)
    return ((member.path, result) for member, result in done)


def _train(member: MemberToTrain) -> MemberResult:
    return train_member(member.dataset, member.fold, member.settings, member.path)

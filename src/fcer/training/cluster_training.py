"""Members that are to be there, trained here or on a cluster, each by one worker, to the very same weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer.data.dataset import Dataset
from fcer.data.folds import Slot
from fcer.runtime.parallel import map_tasks
from fcer.training.epochs import OnEpoch
from fcer.training.member import MemberResult, train_member
from fcer.training.settings import MemberSettings
from fcer.training.threads import with_threads_of_here

__all__ = ["PlannedMember", "train_on_cluster"]


@dataclass(frozen=True)
class PlannedMember:
    """A member that is to be there."""

    dataset: Dataset
    slot: Slot
    settings: MemberSettings
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def train(self, on_epoch: OnEpoch | None = None) -> MemberResult:
        """Train it where it is not there yet."""
        return train_member(self.dataset, self.slot.fold, self.settings, self.path, on_epoch=on_epoch)


def train_on_cluster(members: Sequence[PlannedMember]) -> Iterator[tuple[Path, MemberResult]]:
    """What became of each, by its checkpoint, as it is done."""
    gpu = any(member.settings.device == "cuda" for member in members)
    train = with_threads_of_here(PlannedMember.train)
    done = map_tasks(train, members, workers=1, label="train", unit="member", gpu=gpu)
    return ((member.path, result) for member, result in done)

"""Training of an ensemble's members, and the baseline that they must beat."""

from fcer.training.distributed import World
from fcer.training.member import MemberResult, train_member
from fcer.training.persistence import persistence_ap
from fcer.training.progress import EpochRecord
from fcer.training.settings import MemberSettings, training_key

__all__ = [
    "EpochRecord",
    "MemberResult",
    "MemberSettings",
    "World",
    "persistence_ap",
    "train_member",
    "training_key",
]

"""Training of an ensemble's members, the baseline that they must beat, and distillation into a student."""

from fcer.training.cluster_training import PlannedMember, train_on_cluster
from fcer.training.distillation import Distilled, distil
from fcer.training.distributed import World, put_on
from fcer.training.epochs import EpochRecord
from fcer.training.family_training import TRAINED_FAMILIES, train_family
from fcer.training.head_settings import HeadSettings
from fcer.training.member import MemberResult, train_member
from fcer.training.settings import MemberSettings, keeps_apart, training_key
from fcer.training.teaching import Teaching
from fcer.training.threads import with_threads_of_here

__all__ = [
    "TRAINED_FAMILIES",
    "Distilled",
    "EpochRecord",
    "HeadSettings",
    "MemberResult",
    "MemberSettings",
    "PlannedMember",
    "Teaching",
    "World",
    "distil",
    "keeps_apart",
    "put_on",
    "train_family",
    "train_member",
    "train_on_cluster",
    "training_key",
    "with_threads_of_here",
]

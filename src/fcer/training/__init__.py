"""Training of an ensemble's members, the baseline that they must beat, and distillation into a student."""

from fcer.training.apart import MemberToTrain, train_apart
from fcer.training.distillation import Distilled, distil
from fcer.training.distributed import World, choose_device, put_on
from fcer.training.feature_cache import Teaching
from fcer.training.head_settings import HeadSettings
from fcer.training.member import MemberResult, train_member
from fcer.training.persistence import persistence_ap
from fcer.training.progress import EpochRecord
from fcer.training.settings import MemberSettings, training_key
from fcer.training.threads import with_threads_of_here

__all__ = [
    "Distilled",
    "EpochRecord",
    "HeadSettings",
    "MemberResult",
    "MemberSettings",
    "MemberToTrain",
    "Teaching",
    "World",
    "choose_device",
    "distil",
    "persistence_ap",
    "put_on",
    "train_apart",
    "train_member",
    "training_key",
    "with_threads_of_here",
]

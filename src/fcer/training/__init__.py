"""Training of an ensemble's members, the baseline that they must beat, and distillation into a student."""

from fcer.training.distillation import Distilled, distil
from fcer.training.distributed import World, choose_device
from fcer.training.feature_cache import Teaching
from fcer.training.head_settings import HeadSettings
from fcer.training.member import MemberResult, train_member
from fcer.training.persistence import persistence_ap
from fcer.training.progress import EpochRecord
from fcer.training.settings import MemberSettings, training_key

__all__ = [
    "Distilled",
    "EpochRecord",
    "HeadSettings",
    "MemberResult",
    "MemberSettings",
    "Teaching",
    "World",
    "choose_device",
    "distil",
    "persistence_ap",
    "train_member",
    "training_key",
]

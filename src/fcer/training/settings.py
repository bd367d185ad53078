"""What decides a member: its settings, the data it saw, and the one key that stands for both."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from fcer.config.derived import FromConfig
from fcer.config.settings import Config
from fcer.data.calibration_split import enough_to_part
from fcer.data.channels import feature_indices, reads_land_cover
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.runtime import doors
from fcer.runtime.steps import Step
from fcer.training.batches import draw_seed

__all__ = ["MemberSettings", "keeps_apart", "training_key"]

_SCHEMA = 3
"""Part of every training key: raise it when the same settings and data would give other weights."""

_WHERE_ONLY = ("device", "loader_workers")
"""Settings that say where the work is done, not what comes out of it."""


@dataclass(frozen=True)
class MemberSettings(FromConfig):
    """How a member is trained; defaults, meanings and checks are those of `Config`, mostly of its `member_*`."""

    prefix: ClassVar[str] = "member_"

    arch: str = Config.arch
    width: float = Config.width
    features: tuple[int, ...] = feature_indices(Config.features)
    """What the backbone sees of a day: indices into the 40 channels after preprocessing."""
    crop: int = Config.crop
    """Side in px of the random crops in training and of the central crop in validation."""
    epochs: int = Config.member_epochs
    lr: float = Config.member_lr
    """The highest learning rate, with which the schedule begins."""
    weight_decay: float = Config.member_weight_decay
    """On the weights of layers; biases and norms are left free."""
    batch_size: int = Config.member_batch_size
    """Samples behind one step of the optimiser, in all processes together."""
    schedule: str = Config.member_schedule
    """`cosine`: falls to zero over `epochs`; `plateau`: halves when validation AP has not risen for some epochs."""
    patience: int = Config.member_patience
    """`plateau` halves at half of that."""
    pos_weight: float = Config.pos_weight
    clip_norm: float = Config.clip_norm
    dropout: float = Config.member_dropout
    """In the decoder."""
    apart: bool = Config.member_apart
    """Whether some validation fires are kept out of choosing the epoch; decides nothing where they are too few."""
    seed: int = Config.seed
    """Of weights, order, views and dropout, each drawn anew for every fold and epoch."""
    device: str = Config.device
    precision: str = Config.precision
    """Of training steps; validation is in single precision."""
    loader_workers: int = Config.loader_workers

    @classmethod
    def of(cls, config: Config, round: int = 0) -> Self:
        """What of the configuration decides a member; in each further round of a fold another seed."""
        seed = draw_seed(config.seed, round) >> 32 if round else config.seed  # as many bits as a seed may have
        return cls(**{**cls._taken(config), "features": feature_indices(config.features), "seed": seed})

    def deciding(self) -> dict[str, Any]:
        """The settings that decide what comes out, by name."""
        deciding = {name: value for name, value in asdict(self).items() if name not in _WHERE_ONLY}
        deciding["arch"] = doors.signed(doors.BACKBONES, self.arch)
        del deciding["apart"]  # it is the fires that decide, see `keeps_apart`
        if not self.dropout:  # members of before, when there was none, are the same
            del deciding["dropout"]
        if self.precision == Config.precision:
            del deciding["precision"]
        return deciding


def keeps_apart(dataset: Dataset, fold: Fold, settings: MemberSettings) -> bool:
    """Whether half of the fold's validation fires have no part in choosing an epoch."""
    return settings.apart and enough_to_part(dataset.fires(fold.validation))


def training_key(dataset: Dataset, fold: Fold, settings: MemberSettings) -> str:
    """SHA-256 in hex of everything that decides a member's weights: same key, same member."""
    decided_by = {
        "settings": settings.deciding(),
        "fold": fold.number,
        "train": dataset.fingerprint(fold.train),
        "validation": dataset.fingerprint(fold.validation),
        **({"apart": True} if keeps_apart(dataset, fold, settings) else {}),
    }
    # unknown land cover was in no class before
    return Step(_SCHEMA + reads_land_cover(settings.features), decided_by).key

"""What decides a member: its settings, the data it saw, and the one key that stands for both."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from fcer.data.channels import feature_indices
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.errors import ConfigError
from fcer.models.backbones import STRIDE, architecture

__all__ = ["DEVICES", "SCHEDULES", "MemberSettings", "training_key"]

SCHEDULES = ("cosine", "plateau")
DEVICES = ("auto", "cpu", "cuda")

_SCHEMA = 1
"""Part of every training key: raise it when the same settings and data would give other weights."""

_WHERE_ONLY = ("device", "loader_workers")
"""Settings that say where the work is done, not what comes out of it."""


@dataclass(frozen=True)
class MemberSettings:
    """How a member is trained."""

    arch: str = "utae_t5"
    """The backbone's name."""
    width: float = 1.0
    """Factor on the backbone's channels; 1 is the released shape."""
    features: tuple[int, ...] = (0, 1, 2, 3, 4, 38, 39)
    """What the backbone sees of a day: indices into the 40 channels after preprocessing."""
    crop: int = 128
    """Side in px of the random crops in training and of the central crop in validation; a multiple of 32."""
    epochs: int = 50
    """Passes over the training years, at most."""
    lr: float = 1e-3
    """The highest learning rate of AdamW, with which the schedule begins."""
    weight_decay: float = 0.01
    """AdamW's, on the weights of layers; biases and norms are left free."""
    batch_size: int = 16
    """Samples behind one step of the optimiser, in all processes together."""
    schedule: str = "cosine"
    """`cosine`: falls to zero over `epochs`; `plateau`: halves when validation AP has not risen for some epochs."""
    patience: int = 10
    """Epochs without a better validation AP after which training stops; `plateau` halves at half of that."""
    pos_weight: float = 5.0
    """Weight of a burning pixel in the loss; pixels without fire have 1."""
    clip_norm: float = 1.0
    """The gradient's norm is cut down to this."""
    seed: int = 0
    """Of weights, order, views and dropout, each drawn anew for every fold and epoch."""
    device: str = "auto"
    """`cuda`, `cpu`, or `auto`: a GPU where there is one."""
    loader_workers: int = 0
    """Processes that read samples ahead; 0: they are read in this one."""

    def __post_init__(self) -> None:
        architecture(self.arch)
        feature_indices(self.features)
        if self.crop < STRIDE or self.crop % STRIDE:
            raise ConfigError(f"crop: {self.crop} is not a multiple of {STRIDE}, which the backbones need: try 128")
        for name, choices in (("schedule", SCHEDULES), ("device", DEVICES)):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name}: {getattr(self, name)!r} is none of {', '.join(choices)}; choose one")
        for name, least in (("epochs", 1), ("batch_size", 1), ("patience", 1), ("seed", 0), ("loader_workers", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: {getattr(self, name)} is too small; give at least {least}")
        for name in ("lr", "pos_weight", "clip_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: {getattr(self, name)} cannot be used; give a number above 0")
        if not 0 <= self.weight_decay < math.inf:
            raise ConfigError(f"weight_decay: {self.weight_decay} cannot be used; give 0 or more")

    def deciding(self) -> dict[str, Any]:
        """The settings that decide what comes out, by name."""
        return {name: value for name, value in asdict(self).items() if name not in _WHERE_ONLY}


def training_key(dataset: Dataset, fold: Fold, settings: MemberSettings) -> str:
    """SHA-256 in hex of everything that decides a member's weights: same key, same member."""
    decided_by = {
        "schema": _SCHEMA,
        "settings": settings.deciding(),
        "fold": fold.number,
        "train": dataset.fingerprint(fold.train),
        "validation": dataset.fingerprint(fold.validation),
    }
    return hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()

"""How a student's head is fitted; the defaults are the paper's."""

import math
from dataclasses import dataclass

from fcer.errors import ConfigError
from fcer.training.feature_shards import TARGETS
from fcer.training.head_losses import LOSSES

__all__ = ["HeadSettings"]


@dataclass(frozen=True)
class HeadSettings:
    """What decides a head, given what is cached."""

    hidden: tuple[int, ...] = ()
    """Channels of hidden 1×1 layers; none is the paper's single 1×1 convolution."""
    logit: bool = False
    """Whether the backbone's logit is one more input."""
    loss: str = "rmsle"
    target: str = "std"
    """The teacher's uncertainty: `std` is the paper's normalised standard deviation over members."""
    lr: float = 1e-3
    """Of SGD, with which the decay begins."""
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int = 4
    power: float = 0.9
    """Of the polynomial decay of the learning rate over `epochs`."""
    epochs: int = 100
    patience: int = 20
    """Epochs without a better validation AUROC after which fitting stops."""
    seed: int = 0
    """Of the first weights and of the order of samples."""

    def __post_init__(self) -> None:
        for name, choices in (("loss", LOSSES), ("target", TARGETS)):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name}: {getattr(self, name)!r} is none of {', '.join(choices)}; choose one")
        for name in ("epochs", "patience", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)} is too small; give at least 1")
        if any(width < 1 for width in self.hidden):
            raise ConfigError(f"hidden: {list(self.hidden)} has a layer without channels; give numbers from 1 on")
        if not (0 < self.lr < math.inf and 0 <= self.weight_decay < math.inf and 0 <= self.power < math.inf):
            raise ConfigError("lr, weight_decay, power: give finite numbers, lr above 0 and the others from 0 on")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum: {self.momentum} cannot be used; give 0 or more, below 1")

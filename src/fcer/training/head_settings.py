"""How a student's head is fitted; defaults (the paper's), meanings and checks are those of `head_*` in `Config`."""

from dataclasses import dataclass
from typing import ClassVar

from fcer.config.derived import FromConfig
from fcer.config.settings import Config
from fcer.errors import ConfigError
from fcer.models.student import HeadSpec

__all__ = ["HeadSettings"]


@dataclass(frozen=True)
class HeadSettings(FromConfig):
    """What decides a head, given what is cached."""

    prefix: ClassVar[str] = "head_"

    hidden: tuple[int, ...] = Config.head_hidden
    logit: bool = Config.head_logit
    context: bool = Config.head_context
    fire: bool = Config.head_fire
    decoder: bool = Config.head_decoder
    far: float = Config.head_far
    loss: str = Config.head_loss
    target: str = Config.head_target
    lr: float = Config.head_lr
    momentum: float = Config.head_momentum
    weight_decay: float = Config.head_weight_decay
    batch_size: int = Config.head_batch_size
    power: float = Config.head_power
    epochs: int = Config.head_epochs
    patience: int = Config.head_patience
    seed: int = Config.seed
    """Of the first weights and of the order of samples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.decoder or self.logit or self.context or self.fire):
            raise ConfigError("head_decoder: false leaves the head nothing to see; give --head-logit true")

    def spec(self, features: int) -> HeadSpec:
        """The head's shape on so many features of the decoder."""
        return HeadSpec(features, self.hidden, self.logit, self.context, self.fire, self.decoder)

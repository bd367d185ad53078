"""What of the configuration decides a member and a head."""

from fcer.config import Config
from fcer.data.channels import feature_indices
from fcer.training import HeadSettings, MemberSettings
from fcer.training.batches import draw_seed

__all__ = ["head_settings", "member_settings"]


def member_settings(config: Config, round: int = 0) -> MemberSettings:
    """What of the configuration decides a member; in each further round of a fold another seed."""
    return MemberSettings(
        arch=config.arch,
        width=config.width,
        features=feature_indices(config.features),
        crop=config.crop,
        epochs=config.member_epochs,
        lr=config.member_lr,
        weight_decay=config.member_weight_decay,
        batch_size=config.member_batch_size,
        schedule=config.member_schedule,
        patience=config.member_patience,
        pos_weight=config.pos_weight,
        clip_norm=config.clip_norm,
        seed=draw_seed(config.seed, round) if round else config.seed,
        device=config.device,
        loader_workers=0,
    )


def head_settings(config: Config) -> HeadSettings:
    """What of the configuration decides a head."""
    return HeadSettings(
        hidden=config.head_hidden,
        logit=config.head_logit,
        loss=config.head_loss,
        target=config.head_target,
        lr=config.head_lr,
        momentum=config.head_momentum,
        weight_decay=config.head_weight_decay,
        batch_size=config.head_batch_size,
        power=config.head_power,
        epochs=config.head_epochs,
        patience=config.head_patience,
        seed=config.seed,
    )

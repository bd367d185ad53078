"""Our own checkpoints: safetensors weights under a JSON header that says what they are.

The header holds all that a later command must know to use the weights as they were trained (which channels,
standardised how) and to trace them (which years, which data, which code). It can be read without the weights.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

from fcer.errors import CheckpointError
from fcer.models import backbones
from fcer.models.backbones import Backbone, BackboneSpec
from fcer.models.headers import check_bytes, opened, parse_header, save_sealed
from fcer.models.precision import BF16, FP32
from fcer.models.weight_shapes import state_shapes
from fcer.models.weights import backbone_from_weights, unreadable
from fcer.runtime.files import file_digest

__all__ = ["CheckpointInfo", "content_hash", "load_checkpoint", "read_info", "save_checkpoint"]

_MOST_MARGIN = 256


@dataclass(frozen=True)
class CheckpointInfo:
    """What a checkpoint's weights are and where they come from."""

    arch: str
    channels: int
    """Channels of one day."""
    width: float
    fold: int | None
    """The fold it was trained on; none for years chosen by hand."""
    train_years: tuple[int, ...]
    val_years: tuple[int, ...]
    test_years: tuple[int, ...]
    features: tuple[int, ...]
    """The channels' indices among those after preprocessing, in order."""
    mean: tuple[float, ...]
    """Mean of each raw channel that inputs are standardised with."""
    std: tuple[float, ...]
    val_ap: float | None
    """Average precision on the validation years; none where it is not defined."""
    dataset_fingerprint: str
    code_version: str
    training_key: str | None = None
    """Stands for all that decided the weights; none where `fcer train` did not make them, or did not yet say it."""
    pos_weight: float | None = None
    """Weight of a burning pixel in the loss that they were trained with; none where that is not known."""
    margin: int = 0
    """Pixels that images grow by before they are predicted with them; released ones', and older ones', do not."""
    apart: bool = False
    """Whether half of its validation fires, left for calibration, had no part in choosing its epoch."""
    precision: str = FP32
    """What its training steps computed with."""

    def __post_init__(self) -> None:
        if backbones.backbone.find(self.arch) is None:
            known = ", ".join(backbones.backbone.installed)
            raise ValueError(f"arch {self.arch!r} is not one of {known}: where another package brings it, install that")
        if len(self.features) != self.channels:
            raise ValueError(f"{len(self.features)} features for {self.channels} channels")
        if len(self.mean) != len(self.std):
            raise ValueError(f"{len(self.mean)} means for {len(self.std)} standard deviations")
        if not all(map(math.isfinite, (self.width, *self.mean, *self.std))):
            raise ValueError("width, mean or std is not finite")
        if self.val_ap is not None and not 0 <= self.val_ap <= 1:
            raise ValueError(f"val_ap {self.val_ap} is outside [0, 1]")
        if self.pos_weight is not None and not 0 < self.pos_weight < math.inf:
            raise ValueError(f"pos_weight {self.pos_weight} is no weight")
        if self.precision not in (FP32, BF16):
            raise ValueError(f"precision {self.precision!r} is neither {FP32} nor {BF16}")
        if not 0 <= self.margin <= _MOST_MARGIN:
            raise ValueError(f"a margin of {self.margin} px is outside [0, {_MOST_MARGIN}]")

    @property
    def spec(self) -> BackboneSpec:
        """The backbone that the weights belong to."""
        return BackboneSpec(self.arch, self.channels, self.width)


def save_checkpoint(path: Path, backbone: Backbone, info: CheckpointInfo) -> None:
    """Write the backbone's weights and `info` to `path`, whole or not at all."""
    if (info.spec, info.margin) != (backbone.spec, backbone.margin):
        raise ValueError(f"{info.spec} does not describe a backbone built from {backbone.spec}")
    weights = {key: value.detach().cpu().contiguous() for key, value in backbone.state_dict().items()}
    if {key: tuple(value.shape) for key, value in weights.items()} != state_shapes(info.spec):
        raise ValueError("its batch norms are folded away: save the backbone that the fast copy was made from")
    save_sealed(path, weights, asdict(info))


def load_checkpoint(
    path: Path, arch: str | None = None, channels: int | None = None
) -> tuple[Backbone, CheckpointInfo]:
    """The backbone in `path`, in eval mode, and its header.

    Parameters
    ----------
    path
        A file that `save_checkpoint` wrote.
    arch
        The architecture it must have; any where not given.
    channels
        The channels of one day it must have; likewise.
    """
    with opened(path) as file:
        info = parse_header(path, file.metadata(), CheckpointInfo, written_by="fcer train")
        weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
        check_bytes(path)
    asked = (arch or info.arch, info.channels if channels is None else channels)
    if asked != (info.arch, info.channels):
        raise CheckpointError(
            f"{path}: it holds {info.arch} on {info.channels} channels a day, not {asked[0]} on {asked[1]}; "
            "choose what the file holds, or give another checkpoint"
        )
    backbone = backbone_from_weights(weights, path, info.arch, info.channels, info.width)
    if backbone.spec != info.spec:
        raise CheckpointError(
            f"{path}: its header says width {info.width:g}, its weights {backbone.spec.width:g}; "
            "the file was tampered with, train it again"
        )
    backbone.margin = info.margin
    return backbone, info


def read_info(path: Path) -> CheckpointInfo:
    """The header of `path` alone, at no cost for the weights."""
    with opened(path) as file:
        return parse_header(path, file.metadata(), CheckpointInfo, written_by="fcer train")


def content_hash(path: Path) -> str:
    """SHA-256 of the file's bytes in hex: the key under which what was computed from it is cached."""
    try:
        return file_digest(path)
    except OSError as error:
        raise unreadable(path, error) from None

"""Backbones by name: `utae_t5`, `unet_t5`, `unet_t1`, and those of other packages, all called alike.

A backbone is a subclass of `Backbone`, registered by `@backbone("name")`, elsewhere by a line in `pyproject.toml`:

    [project.entry-points."fcer.backbones"]
    my_backbone = "my_package:MyBackbone"

Every backbone maps a fire's latest days (B, T, C, H, W) to logits of tomorrow's fire (B, 1, H, W). Height
and width must be multiples of 32 here; `fcer.models.inference` takes any size.

Shape suffixes: B samples, T days, C channels, H height, W width.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from fcer.errors import ConfigError
from fcer.models.temporal_attention import HEADS, TemporalAttention, merge_days
from fcer.models.unet import Decoder, UNet
from fcer.runtime import doors
from fcer.runtime.doors import Door

__all__ = [
    "ARCHITECTURES",
    "MARGIN",
    "STAGES",
    "STRIDE",
    "Architecture",
    "AttendedDays",
    "Backbone",
    "BackboneSpec",
    "UNetBackbone",
    "architecture",
    "backbone",
    "blank",
    "build",
]

STRIDE = 32
"""How much smaller than the image the deepest feature map is."""

MARGIN = 16
"""Pixels that images grow by on every side before members that are trained here predict them, cropped off after."""

STAGES = (64, 128, 256, 512)
"""Channels of the encoder's stages in the released shape, which is width 1."""
_OUTPUTS = (256, 128, 64, 32, 16)
_ATTENTION_FEATURES = 256


@dataclass(frozen=True)
class BackboneSpec:
    """All that it takes to build a backbone: its architecture, the channels of one day and its width."""

    arch: str
    channels: int = 7
    width: float = 1.0


class Backbone(nn.Module, ABC):
    """A network called with days; what others bring subclasses it, and has its attributes.

    Attributes
    ----------
    days
        How many days it takes.
    released_folder
        Where released checkpoints of it lie, if there are any.
    spec
        What it was built from; `spec.width` is a wish that it may leave aside.
    margin
        How far images grow before they are predicted (`fcer.models.inference.padded`); released ones' do not.
    """

    days: ClassVar[int]
    released_folder: ClassVar[str] = ""
    margin: int = 0

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__()
        self.spec = spec

    @property
    @abstractmethod
    def feature_channels(self) -> int:
        """Channels of the last feature map, which the student's head reads."""

    @abstractmethod
    def features(self, x_BTCHW: Tensor) -> Tensor:
        """The last feature map (B, features, H, W), of the image's size."""

    @abstractmethod
    def fire_logits(self, features_BFHW: Tensor) -> Tensor:
        """Logits of tomorrow's fire (B, 1, H, W) from the last feature map."""

    def forward(self, x_BTCHW: Tensor) -> Tensor:
        """Logits of tomorrow's fire (B, 1, H, W)."""
        return self.fire_logits(self.features(x_BTCHW))


@dataclass(frozen=True)
class Architecture:
    """What is fixed about a backbone before its size is chosen."""

    name: str
    kind: type[Backbone]

    @property
    def days(self) -> int:
        """Days that one sample holds."""
        return self.kind.days

    @property
    def released_folder(self) -> str:
        """Where the released checkpoints of this architecture lie."""
        return self.kind.released_folder or self.name

    @property
    def is_unet(self) -> bool:
        """Whether it is one of ours, whose layers we know."""
        return issubclass(self.kind, UNetBackbone)


def _accepted(name: str, kind: Any) -> Architecture:
    if not (isinstance(kind, type) and issubclass(kind, Backbone)):
        raise TypeError("it is no subclass of fcer.models.backbones.Backbone")
    missing = sorted(kind.__abstractmethods__ | ({"days"} - set(dir(kind))))
    if missing:
        raise TypeError(f"it lacks {', '.join(missing)} of fcer.models.backbones.Backbone")
    return Architecture(name, kind)


backbone: Door[Architecture] = Door(doors.BACKBONES, _accepted)
"""`@backbone("name")` registers a class."""


class UNetBackbone(Backbone):
    """A U-Net; subclasses say how the days become one image.

    Attributes
    ----------
    model
        Encoder, decoder and segmentation head, under the name that released checkpoints use.
    """

    def __init__(self, spec: BackboneSpec, in_channels: int) -> None:
        super().__init__(spec)
        self.model = UNet(in_channels, _stages(spec.width), _outputs(spec.width))

    @property
    def decoder(self) -> Decoder:
        """The module whose output is the last feature map."""
        return self.model.decoder

    @property
    def feature_channels(self) -> int:
        """Channels of the decoder's last feature map."""
        return _outputs(self.spec.width)[-1]

    @abstractmethod
    def maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's five maps with the days merged, finest first."""

    def features(self, x_BTCHW: Tensor) -> Tensor:
        """The decoder's last feature map (B, features, H, W), of the image's size."""
        _, T, C, H, W = x_BTCHW.shape
        days, channels = self.days, self.spec.channels
        if days != T or channels != C or H % STRIDE or W % STRIDE:
            raise ValueError(
                f"{self.spec.arch} takes (batch, {days} days, {channels} channels, height, width) with height "
                f"and width multiples of {STRIDE}, not {tuple(x_BTCHW.shape)}"
            )
        return cast(Tensor, self.decoder(self.maps(x_BTCHW)))

    def fire_logits(self, features_BFHW: Tensor) -> Tensor:
        """Logits of tomorrow's fire (B, 1, H, W) from the decoder's last feature map."""
        return cast(Tensor, self.model.segmentation_head(features_BFHW))


@backbone("utae_t5")
class AttendedDays(UNetBackbone):
    """Each day through the same encoder; temporal attention merges the maps."""

    days = 5
    released_folder = "Res18UTAE_T5"

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__(spec, spec.channels)
        self.ltae = TemporalAttention(_stages(spec.width)[-1], _scaled(_ATTENTION_FEATURES, spec.width, HEADS))

    def maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's maps, each merged over the days with the attention of the deepest."""
        # days join the batch: one large convolution instead of T small ones
        *skips, deepest = [map_.unflatten(0, x_BTCHW.shape[:2]) for map_ in self.model.encoder(x_BTCHW.flatten(0, 1))]
        merged_BChw, weight_BTKhw = self.ltae(deepest)
        return [*(merge_days(skip_BTCHW, weight_BTKhw) for skip_BTCHW in skips), merged_BChw]


class StackedDays(UNetBackbone):
    """The days' channels side by side in one image, day by day; with one day, that day."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__(spec, self.days * spec.channels)

    def maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's maps of the stacked days."""
        return cast(list[Tensor], self.model.encoder(x_BTCHW.flatten(1, 2)))


@backbone("unet_t5")
class FiveStackedDays(StackedDays):
    """Five days."""

    days = 5
    released_folder = "Res18Unet_T5"


@backbone("unet_t1")
class OneDay(StackedDays):
    """Today alone."""

    days = 1
    released_folder = "Res18Unet_T1"


ARCHITECTURES: Mapping[str, Architecture] = backbone.own
"""Those of this package."""


def architecture(name: str) -> Architecture:
    """The facts of the architecture called `name`."""
    found = backbone.find(name)
    if found is None:
        raise ConfigError(f"arch: there is no backbone {name!r}; choose one of {', '.join(backbone.installed)}")
    return found


def build(arch: str, channels: int = 7, width: float = 1.0) -> Backbone:
    """A backbone with fresh weights, drawn from torch's random state.

    Parameters
    ----------
    arch
        One of `ARCHITECTURES`, or of another package.
    channels
        Channels of one day.
    width
        Factor on the channel counts; 1 is the released shape. Taken to the nearest sixteenth (at least one), from which
        all counts follow: attention needs its 16 heads and 16 norm groups to divide them, and the weights' shapes then
        tell the width.
    """
    if channels < 1:
        raise ConfigError(f"channels: a day has at least one channel, not {channels}")
    if not 0 < width < float("inf"):
        raise ConfigError(f"width: {width} is no factor for channel counts; 1 is the released width")
    spec = BackboneSpec(arch, channels, max(1, round(width * HEADS)) / HEADS)
    make: Any = architecture(arch).kind  # those that are registered take nothing but their spec
    return cast(Backbone, make(spec))


def blank(spec: BackboneSpec) -> Backbone:
    """A backbone whose weights are still to be loaded: no time, and none of torch's random state, spent on fresh ones.

    Another package's is built as usual, since what it computes as it is built may be more than weights.
    """
    if architecture(spec.arch).is_unet:
        with torch.device("meta"):
            return build(spec.arch, spec.channels, spec.width)
    with torch.random.fork_rng():
        return build(spec.arch, spec.channels, spec.width)


def _stages(width: float) -> tuple[int, int, int, int]:
    """Channels of the encoder's stages: at least one for each attention head."""
    first, second, third, fourth = (_scaled(count, width, HEADS) for count in STAGES)
    return first, second, third, fourth


def _outputs(width: float) -> list[int]:
    """Channels of the decoder's blocks: at least 8, so that the student's head has something to read."""
    return [_scaled(count, width, 8) for count in _OUTPUTS]


def _scaled(count: int, width: float, step: int) -> int:
    return max(step, step * round(count * width / step))

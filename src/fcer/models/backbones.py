"""Backbones by name: `utae_t5`, `unet_t5`, `unet_t1`, all called alike.

Every backbone maps a fire's latest days (B, T, C, H, W) to logits of tomorrow's fire (B, 1, H, W). Height
and width must be multiples of 32 here; `fcer.models.inference` takes any size.

Shape suffixes: B samples, T days, C channels, H height, W width.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import torch
from torch import Tensor, nn

from fcer.errors import ConfigError
from fcer.models.temporal_attention import HEADS, TemporalAttention, merge_days
from fcer.models.unet import Decoder, UNet

__all__ = [
    "ARCHITECTURES",
    "MARGIN",
    "STRIDE",
    "Architecture",
    "Backbone",
    "BackboneSpec",
    "architecture",
    "build",
    "candidates",
    "state_shapes",
]

STRIDE = 32
"""How much smaller than the image the deepest feature map is."""

MARGIN = 16
"""Pixels that images grow by on every side before members that are trained here predict them, cropped off after."""

# the released shape, which is width 1
_STAGES = (64, 128, 256, 512)
_OUTPUTS = (256, 128, 64, 32, 16)
_ATTENTION_FEATURES = 256


@dataclass(frozen=True)
class Architecture:
    """What is fixed about a backbone before its size is chosen."""

    name: str
    days: int
    """Days that one sample holds."""
    attends: bool
    """Whether the encoder sees each day alone and attention merges them; else days are stacked channels."""
    released_folder: str
    """Where the released checkpoints of this architecture lie."""


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        facts.name: facts
        for facts in (
            Architecture("utae_t5", days=5, attends=True, released_folder="Res18UTAE_T5"),
            Architecture("unet_t5", days=5, attends=False, released_folder="Res18Unet_T5"),
            Architecture("unet_t1", days=1, attends=False, released_folder="Res18Unet_T1"),
        )
    }
)


@dataclass(frozen=True)
class BackboneSpec:
    """All that it takes to build a backbone: its architecture, the channels of one day and its width."""

    arch: str
    channels: int = 7
    width: float = 1.0


class Backbone(nn.Module, ABC):
    """A U-Net called with days; subclasses say how the days become one image.

    Attributes:
        spec: what it was built from.
        days: how many days it takes.
        model: encoder, decoder and segmentation head, under the name that released checkpoints use.
        margin: how far images grow before they are predicted (`fcer.models.inference.padded`); released ones' do not.
    """

    margin: int = 0

    def __init__(self, spec: BackboneSpec, in_channels: int) -> None:
        super().__init__()
        self.spec = spec
        self.days = ARCHITECTURES[spec.arch].days
        self.model = UNet(in_channels, _stages(spec.width), _outputs(spec.width))

    @property
    def decoder(self) -> Decoder:
        """The module whose output is the last feature map, which the student's head reads."""
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

    def forward(self, x_BTCHW: Tensor) -> Tensor:
        """Logits of tomorrow's fire (B, 1, H, W)."""
        return self.fire_logits(self.features(x_BTCHW))


class StackedDays(Backbone):
    """The days' channels side by side in one image, day by day; with one day, that day."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__(spec, ARCHITECTURES[spec.arch].days * spec.channels)

    def maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's maps of the stacked days."""
        return cast(list[Tensor], self.model.encoder(x_BTCHW.flatten(1, 2)))


class AttendedDays(Backbone):
    """Each day through the same encoder; temporal attention merges the maps."""

    def __init__(self, spec: BackboneSpec) -> None:
        super().__init__(spec, spec.channels)
        self.ltae = TemporalAttention(_stages(spec.width)[-1], _attention_features(spec.width))

    def maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's maps, each merged over the days with the attention of the deepest."""
        # days join the batch: one large convolution instead of T small ones
        *skips, deepest = [map_.unflatten(0, x_BTCHW.shape[:2]) for map_ in self.model.encoder(x_BTCHW.flatten(0, 1))]
        merged_BChw, weight_BTKhw = self.ltae(deepest)
        return [*(merge_days(skip_BTCHW, weight_BTKhw) for skip_BTCHW in skips), merged_BChw]


def architecture(name: str) -> Architecture:
    """The facts of the architecture called `name`."""
    if name not in ARCHITECTURES:
        raise ConfigError(f"arch: there is no backbone {name!r}; choose one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def build(arch: str, channels: int = 7, width: float = 1.0) -> Backbone:
    """A backbone with fresh weights, drawn from torch's random state.

    Args:
        arch: one of `ARCHITECTURES`.
        channels: channels of one day.
        width: factor on the channel counts; 1 is the released shape. Taken to the nearest sixteenth (at
            least one), from which all counts follow: attention needs its 16 heads and 16 norm groups to
            divide them, and the weights' shapes then tell the width.
    """
    if channels < 1:
        raise ConfigError(f"channels: a day has at least one channel, not {channels}")
    if not 0 < width < float("inf"):
        raise ConfigError(f"width: {width} is no factor for channel counts; 1 is the released width")
    spec = BackboneSpec(arch, channels, max(1, round(width * HEADS)) / HEADS)
    return AttendedDays(spec) if architecture(arch).attends else StackedDays(spec)


def state_shapes(spec: BackboneSpec) -> dict[str, tuple[int, ...]]:
    """Every key and shape of the backbone's state dict, without the cost of its weights."""
    with torch.device("meta"):
        backbone = build(spec.arch, spec.channels, spec.width)
    return {key: tuple(value.shape) for key, value in backbone.state_dict().items()}


def candidates(shapes: Mapping[str, tuple[int, ...]]) -> list[BackboneSpec]:
    """The backbones whose first and deepest layers have these shapes.

    Mostly one. The weights cannot tell stacked days from channels, so that a U-Net on 35 channels is both
    `unet_t5` on 7 and `unet_t1` on 35; none where the weights are not those of a backbone at all.
    """
    first = shapes.get("model.encoder.conv1.weight", ())
    deepest = shapes.get("model.encoder.layer4.1.conv2.weight", ())
    if len(first) != 4 or len(deepest) != 4:
        return []
    attends = any(key.startswith("ltae.") for key in shapes)
    found = []
    for facts in ARCHITECTURES.values():
        stacked = 1 if facts.attends else facts.days
        if facts.attends == attends and first[1] % stacked == 0:
            found.append(BackboneSpec(facts.name, first[1] // stacked, deepest[0] / _STAGES[-1]))
    return found


def _stages(width: float) -> tuple[int, int, int, int]:
    """Channels of the encoder's stages: at least one for each attention head."""
    first, second, third, fourth = (_scaled(count, width, HEADS) for count in _STAGES)
    return first, second, third, fourth


def _outputs(width: float) -> list[int]:
    """Channels of the decoder's blocks: at least 8, so that the student's head has something to read."""
    return [_scaled(count, width, 8) for count in _OUTPUTS]


def _attention_features(width: float) -> int:
    return _scaled(_ATTENTION_FEATURES, width, HEADS)


def _scaled(count: int, width: float, step: int) -> int:
    return max(step, step * round(count * width / step))

"""The student: one backbone, and a head that reads the ensemble's disagreement off its decoder's last map.

Shape suffixes: B samples, T days, C channels, H height, W width, F features of the decoder's last map.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from fcer.models.backbones import Backbone
from fcer.models.inference import padded

__all__ = ["HeadSpec", "Student", "StudentMaps", "UncertaintyHead"]


@dataclass(frozen=True)
class HeadSpec:
    """The shape of a head. The default is the paper's: a single 1×1 convolution."""

    features: int
    """Channels of the decoder's last map."""
    hidden: tuple[int, ...] = ()
    """Channels of 1×1 layers in between, each followed by a ReLU."""
    logit: bool = False
    """Whether the backbone's own logit is one more input."""


class UncertaintyHead(nn.Module):
    """1×1 convolutions from a pixel's features to the logit of its uncertainty."""

    def __init__(self, spec: HeadSpec) -> None:
        super().__init__()
        self.spec = spec
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise([spec.features + spec.logit, *spec.hidden, 1]):
            layers += [nn.Conv2d(inputs, outputs, 1), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, features_BFHW: Tensor, logits_BHW: Tensor) -> Tensor:
        """Logits of uncertainty (B, H, W) from the decoder's features and the backbone's own logits."""
        inputs = torch.cat([features_BFHW, logits_BHW[:, None]], dim=1) if self.spec.logit else features_BFHW
        return cast(Tensor, self.layers(inputs))[:, 0]


class StudentOutput(NamedTuple):
    """Before the sigmoid: of fire, and of uncertainty."""

    logits_BHW: Tensor
    uncertainty_logits_BHW: Tensor


class StudentMaps(NamedTuple):
    """What a student says of each pixel: that it burns tomorrow, and how little that is to be trusted; 0 to 1."""

    probability_BHW: Tensor
    uncertainty_BHW: Tensor


class Student(nn.Module):
    """A backbone, and a head on its decoder's last map: nothing of the backbone is touched."""

    def __init__(self, backbone: Backbone, head: UncertaintyHead) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, x_BTCHW: Tensor) -> StudentOutput:
        """Logits of fire and of uncertainty in one pass; height and width are multiples of 32."""
        features_BFHW = self.backbone.features(x_BTCHW)
        logits_BHW = self.backbone.fire_logits(features_BFHW)[:, 0]
        return StudentOutput(logits_BHW, self.head(features_BFHW, logits_BHW))

    @torch.inference_mode()
    def predict(self, x_BTCHW: Tensor) -> StudentMaps:
        """Probability and uncertainty of standardised days of any size."""
        H, W = x_BTCHW.shape[-2:]
        output = self(padded(self.backbone, x_BTCHW))
        return StudentMaps(*(logits[..., :H, :W].sigmoid() for logits in output))

"""The student: one backbone, and a head that reads the ensemble's disagreement off its decoder's last map.

Shape suffixes: B samples, T days, C channels, H height, W width, F features of the decoder's last map.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fcer.models.backbones import Backbone
from fcer.models.inference import predict

__all__ = ["WINDOWS", "HeadSpec", "Student", "StudentMaps", "UncertaintyHead", "window_means"]


WINDOWS = (3, 7, 15)
"""Sides in px of the squares that a head may look at around a pixel."""


@dataclass(frozen=True)
class HeadSpec:
    """The shape of a head. The default is the paper's: a single 1×1 convolution."""

    features: int
    """Channels of the decoder's last map."""
    hidden: tuple[int, ...] = ()
    """Channels of 1×1 layers in between, each followed by a ReLU."""
    logit: bool = False
    """Whether the backbone's own logit is one more input."""
    context: bool = False
    """Whether the backbone's mean probability in each of `WINDOWS` around the pixel is."""

    @property
    def rows(self) -> list[int]:
        """Which of a pixel's numbers are inputs, where features come first, then the logit, then the windows."""
        places = range(self.features + 1 + len(WINDOWS))
        return [
            *places[: self.features],
            *(places[self.features : self.features + 1] if self.logit else ()),
            *(places[self.features + 1 :] if self.context else ()),
        ]


class UncertaintyHead(nn.Module):
    """1×1 convolutions from a pixel's features, and perhaps what is around it, to the logit of its uncertainty."""

    def __init__(self, spec: HeadSpec) -> None:
        super().__init__()
        self.spec = spec
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise([len(spec.rows), *spec.hidden, 1]):
            layers += [nn.Conv2d(inputs, outputs, 1), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, features_BFHW: Tensor, logits_BHW: Tensor) -> Tensor:
        """Logits of uncertainty (B, H, W) from the decoder's features and the backbone's own logits."""
        inputs = [features_BFHW]
        if self.spec.logit:
            inputs.append(logits_BHW[:, None])
        if self.spec.context:
            inputs.append(window_means(logits_BHW))
        return cast(Tensor, self.layers(torch.cat(inputs, dim=1) if len(inputs) > 1 else features_BFHW))[:, 0]

    def of_pixels(self, rows_BRP: Tensor) -> Tensor:
        """Logits of uncertainty (B, P) of pixels whose numbers, all of them, were gathered before."""
        rows = self.spec.rows
        inputs_BRP = rows_BRP[:, : len(rows)] if rows[-1] == len(rows) - 1 else rows_BRP[:, rows]
        return cast(Tensor, self.layers(inputs_BRP[..., None]))[:, 0, :, 0]


def window_means(logits_BHW: Tensor) -> Tensor:
    """The mean probability of fire in each of `WINDOWS` around each pixel (B, windows, H, W), inside the image."""
    prob_B1HW = logits_BHW.sigmoid()[:, None]
    means = [functional.avg_pool2d(prob_B1HW, side, 1, side // 2, count_include_pad=False) for side in WINDOWS]
    return torch.cat(means, dim=1)


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
        logits_B1HW, features_BFHW = predict(self.backbone, x_BTCHW)
        logits_BHW = logits_B1HW[:, 0]
        return StudentMaps(logits_BHW.sigmoid(), self.head(features_BFHW, logits_BHW).sigmoid())

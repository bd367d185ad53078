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
from fcer.models.precision import FP32, computing

__all__ = [
    "CONTEXT_ROWS",
    "FIRE_ROWS",
    "WINDOWS",
    "HeadSpec",
    "Student",
    "StudentMaps",
    "UncertaintyHead",
    "fire_around",
    "probability_around",
]


WINDOWS = (3, 7, 15)
"""Sides in px of the squares that a head may look at around a pixel."""

_REACHES = (3, 5, 7, 11, 15, 23, 31)
"""Sides of the squares that tell how near today's fire is."""

CONTEXT_ROWS = len(WINDOWS) + 1
"""What a head may see of the backbone's probability around a pixel."""

FIRE_ROWS = 2 + len(WINDOWS)
"""What a head may see of today's fire: the pixel, squares around it, and how near it is."""


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
    """Whether the backbone's mean probability in each of `WINDOWS` around the pixel is, and how unsure it is there."""
    fire: bool = False
    """Whether today's fire, there and around it, is."""
    decoder: bool = True
    """Whether the decoder's features are: another backbone's mean something else."""

    @property
    def rows(self) -> list[int]:
        """Which of a pixel's numbers are inputs: features come first, then the logit, windows, and today's fire."""
        first = [0, self.features, self.features + 1, self.features + 1 + CONTEXT_ROWS]
        read = (self.decoder, self.logit, self.context, self.fire)
        ranges = map(range, first, [*first[1:], first[-1] + FIRE_ROWS])
        return [place for places, inside in zip(ranges, read, strict=True) if inside for place in places]


class UncertaintyHead(nn.Module):
    """1×1 convolutions from a pixel's features, and perhaps what is around it, to the logit of its uncertainty."""

    def __init__(self, spec: HeadSpec) -> None:
        super().__init__()
        self.spec = spec
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise([len(spec.rows), *spec.hidden, 1]):
            layers += [nn.Conv2d(inputs, outputs, 1), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, features_BFHW: Tensor, logits_BHW: Tensor, today_BHW: Tensor | None = None) -> Tensor:
        """Logits of uncertainty (B, H, W) from the decoder's features, the backbone's logits and today's fire."""
        spec, inputs = self.spec, []
        if spec.decoder:
            inputs.append(features_BFHW)
        if spec.logit:
            inputs.append(logits_BHW[:, None])
        if spec.context:
            inputs.append(probability_around(logits_BHW))
        if spec.fire:
            if today_BHW is None:
                raise ValueError("this head reads today's fire")
            inputs.append(fire_around(today_BHW))
        return cast(Tensor, self.layers(torch.cat(inputs, dim=1) if len(inputs) > 1 else inputs[0]))[:, 0]

    def of_pixels(self, rows_BRP: Tensor) -> Tensor:
        """Logits of uncertainty (B, P) of pixels whose numbers, all of them, were gathered before."""
        rows = self.spec.rows
        inputs_BRP = rows_BRP[:, : len(rows)] if rows[-1] == len(rows) - 1 else rows_BRP[:, rows]
        return cast(Tensor, self.layers(inputs_BRP[..., None]))[:, 0, :, 0]


def probability_around(logits_BHW: Tensor) -> Tensor:
    """The backbone's probability as a head sees it (B, `CONTEXT_ROWS`, H, W).

    The mean probability of fire in each of `WINDOWS` around each pixel, inside the image, and how near the pixel's own
    is to one half: minus its logit's size.
    """
    prob_B1HW = logits_BHW.sigmoid()[:, None]
    return torch.cat([*(_mean(prob_B1HW, side) for side in WINDOWS), -logits_BHW.abs()[:, None]], dim=1)


def fire_around(today_BHW: Tensor) -> Tensor:
    """Today's fire as a head sees it (B, `FIRE_ROWS`, H, W).

    Whether the pixel burns, the share that does of each of `WINDOWS` around it, and how near fire is: the share of
    squares of growing size around it that hold some.
    """
    fire_B1HW = today_BHW[:, None].float()
    held = [_largest(fire_B1HW, side) for side in _REACHES]
    near_B1HW = torch.stack(held).mean(0)
    return torch.cat([fire_B1HW, *(_mean(fire_B1HW, side) for side in WINDOWS), near_B1HW], dim=1)


def _largest(maps_B1HW: Tensor, side: int) -> Tensor:
    """Rows first, then columns: the same, and far faster for large squares."""
    rows_B1HW = functional.max_pool2d(maps_B1HW, (side, 1), 1, (side // 2, 0))
    return functional.max_pool2d(rows_B1HW, (1, side), 1, (0, side // 2))


def _mean(maps_B1HW: Tensor, side: int) -> Tensor:
    return functional.avg_pool2d(maps_B1HW, side, 1, side // 2, count_include_pad=False)


class StudentOutput(NamedTuple):
    """Before the sigmoid: of fire, and of uncertainty."""

    logits_BHW: Tensor
    uncertainty_logits_BHW: Tensor


class StudentMaps(NamedTuple):
    """What a student says of each pixel: that it burns tomorrow, and how little that is to be trusted; 0 to 1."""

    probability_BHW: Tensor
    uncertainty_BHW: Tensor


class Student(nn.Module):
    """A backbone, and a head on its decoder's last map: nothing of the backbone is touched.

    `fire_channel` is the place of the fire mask among a day's channels, for heads that read it.
    """

    def __init__(self, backbone: Backbone, head: UncertaintyHead, fire_channel: int | None = None) -> None:
        super().__init__()
        if head.spec.fire and fire_channel is None:
            raise ValueError("a head that reads today's fire needs a backbone that sees it")
        self.backbone = backbone
        self.head = head
        self.fire_channel = fire_channel

    def today(self, x_BTCHW: Tensor) -> Tensor | None:
        """The last day's fire mask, which standardising leaves as it is; none where the head does not read it."""
        return x_BTCHW[:, -1, self.fire_channel] if self.head.spec.fire else None

    def forward(self, x_BTCHW: Tensor) -> StudentOutput:
        """Logits of fire and of uncertainty in one pass; height and width are multiples of 32."""
        features_BFHW = self.backbone.features(x_BTCHW)
        logits_BHW = self.backbone.fire_logits(features_BFHW)[:, 0]
        return StudentOutput(logits_BHW, self.head(features_BFHW, logits_BHW, self.today(x_BTCHW)))

    @torch.inference_mode()
    def predict(self, x_BTCHW: Tensor, precision: str = FP32) -> StudentMaps:
        """Probability and uncertainty of standardised days of any size; the head, which costs little, is in fp32."""
        with computing(precision, next(self.parameters()).device):
            logits_B1HW, features_BFHW = (maps.float() for maps in predict(self.backbone, x_BTCHW))
        logits_BHW = logits_B1HW[:, 0]
        uncertainty_BHW = self.head(features_BFHW, logits_BHW, self.today(x_BTCHW.to(logits_BHW))).sigmoid()
        return StudentMaps(logits_BHW.sigmoid(), uncertainty_BHW)

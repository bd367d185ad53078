"""U-Net on a ResNet-18 encoder: decoder, segmentation head and the two joined.

Shape suffixes: B samples, C channels, H height, W width. Attribute names are those of the released
checkpoints' keys (`decoder.blocks.0.conv1.0`, `segmentation_head.0`, ...).
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fcer.models.resnet import ResNet18Encoder

__all__ = ["Decoder", "DecoderBlock", "UNet"]


def _convolution(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class DecoderBlock(nn.Module):
    """Twice the size, joined with the encoder's map of that size, then two 3×3 convolutions."""

    def __init__(self, inputs: int, skip: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs + skip, outputs)
        self.conv2 = _convolution(outputs, outputs)
        self.dropout = nn.Dropout2d(0.0)  # none, but where it is asked for

    def forward(self, x_BCHW: Tensor, skip_BCHW: Tensor | None) -> Tensor:
        """The block's map at twice the size of `x_BCHW`."""
        x_BCHW = F.interpolate(x_BCHW, scale_factor=2.0, mode="nearest")
        if skip_BCHW is not None:
            x_BCHW = torch.cat([x_BCHW, skip_BCHW], dim=1)
        return cast(Tensor, self.dropout(self.conv2(self.conv1(x_BCHW))))


class Decoder(nn.Module):
    """From the encoder's five maps back to the image's size; its output is what the student's head reads.

    Parameters
    ----------
    encoder
        Channels of the encoder's five maps, finest first.
    outputs
        Channels of the five blocks, coarsest first.
    """

    def __init__(self, encoder: Sequence[int], outputs: Sequence[int]) -> None:
        super().__init__()
        deepest, *skips = reversed(encoder)
        inputs = [deepest, *outputs[:-1]]
        # the last block works at the image's own size, for which the encoder has no map
        self.blocks = nn.ModuleList(DecoderBlock(i, s, o) for i, s, o in zip(inputs, [*skips, 0], outputs, strict=True))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, mode="fan_in", nonlinearity="relu")

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        """The last feature map (B, C, H, W) from the encoder's maps, finest first."""
        x_BCHW, *skips = reversed(maps)
        for block, skip_BCHW in zip_longest(self.blocks, skips):
            x_BCHW = block(x_BCHW, skip_BCHW)
        return x_BCHW


class UNet(nn.Module):
    """Encoder, decoder and the 3×3 convolution that turns the decoder's map into logits."""

    def __init__(self, in_channels: int, stages: tuple[int, int, int, int], outputs: Sequence[int]) -> None:
        super().__init__()
        self.encoder = ResNet18Encoder(in_channels, stages)
        self.decoder = Decoder([stages[0], *stages], outputs)
        head = nn.Conv2d(outputs[-1], 1, 3, padding=1)
        nn.init.xavier_uniform_(head.weight)
        nn.init.zeros_(cast(Tensor, head.bias))
        self.segmentation_head = nn.Sequential(head)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Logits (B, 1, H, W)."""
        return cast(Tensor, self.segmentation_head(self.decoder(self.encoder(x_BCHW))))

"""ResNet-18 without its classifier: the encoder of every backbone.

Shape suffixes: B images (samples, or samples × days), C channels, H height, W width. Attribute names are
those of the released checkpoints' keys (`conv1`, `bn1`, `layer1.0.conv1`, `layer2.0.downsample.0`, ...).
"""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["BasicBlock", "ResNet18Encoder"]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions around a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        # the released encoder projects where the resolution halves and nowhere else
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """The block's output; height and width divided by its stride."""
        shortcut_BCHW = x_BCHW if self.downsample is None else self.downsample(x_BCHW)
        y_BCHW = F.relu(self.bn1(self.conv1(x_BCHW)), inplace=True)
        y_BCHW = self.bn2(self.conv2(y_BCHW))
        # in place: convolutions on a CPU leave the rest of the time to memory traffic
        y_BCHW += shortcut_BCHW
        return F.relu(y_BCHW, inplace=True)


class ResNet18Encoder(nn.Module):
    """Five feature maps of an image, at 1/2, 1/4, 1/8, 1/16 and 1/32 of its size.

    Parameters
    ----------
    in_channels
        Channels of the image.
    stages
        Channels of the four stages, (64, 128, 256, 512) in the released shape; the first convolution has as many as the
        first stage.
    """

    def __init__(self, in_channels: int, stages: tuple[int, int, int, int]) -> None:
        super().__init__()
        first, second, third, fourth = stages
        self.conv1 = nn.Conv2d(in_channels, first, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(first, first, 1), BasicBlock(first, first, 1))
        self.layer2 = nn.Sequential(BasicBlock(first, second, 2), BasicBlock(second, second, 1))
        self.layer3 = nn.Sequential(BasicBlock(second, third, 2), BasicBlock(third, third, 1))
        self.layer4 = nn.Sequential(BasicBlock(third, fourth, 2), BasicBlock(fourth, fourth, 1))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                # uniform, of the usual variance: normal numbers cost a second of imports on the meta device,
                # where checkpoints are fitted
                nn.init.kaiming_uniform_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x_BCHW: Tensor) -> list[Tensor]:
        """The five maps, finest first."""
        half = F.relu(self.bn1(self.conv1(x_BCHW)), inplace=True)
        maps = [half, self.layer1(self.maxpool(half))]
        for layer in (self.layer2, self.layer3, self.layer4):
            maps.append(layer(maps[-1]))
        return cast(list[Tensor], maps)

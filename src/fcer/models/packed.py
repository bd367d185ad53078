"""Packed ensembles (Laurent et al. 2023): n small backbones in one network, by grouped convolutions.

Shape suffixes: B samples, T days, C channels, H height, W width, K members; maps of all members lie side by side in
channels, member after member.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fcer.errors import ConfigError
from fcer.models.backbones import AttendedDays, BackboneSpec, UNetBackbone, build
from fcer.models.temporal_attention import merge_days
from fcer.models.unet import DecoderBlock

__all__ = ["PackedBackbone", "pack_states"]


class PackedBackbone(nn.Module):
    """`members` backbones of one shape: called like a backbone, with logits of each member (B, K, H, W)."""

    def __init__(self, spec: BackboneSpec, members: int) -> None:
        super().__init__()
        self.spec, self.members = spec, members
        small = build(spec.arch, spec.channels, spec.width)
        if not isinstance(small, UNetBackbone):
            raise ConfigError(
                f"methods: packed puts U-Nets into one network, and {spec.arch} is another package's; leave packed out"
            )
        self.days = small.days
        self.model = small.model
        _grouped(self.model, members)
        # attention is small and no convolution: each member keeps its own
        again = [build(spec.arch, spec.channels, spec.width) for _ in range(members)]
        self.ltae = nn.ModuleList(one.ltae for one in again if isinstance(one, AttendedDays))

    def forward(self, x_BTCHW: Tensor) -> Tensor:
        """Logits of tomorrow's fire by each member."""
        maps = self._maps(x_BTCHW)
        y_BCHW, *skips = reversed(maps)
        for block, skip_BCHW in zip_longest(self.model.decoder.blocks, skips):
            y_BCHW = functional.interpolate(y_BCHW, scale_factor=2.0, mode="nearest")
            if skip_BCHW is not None:
                y_BCHW = self._beside(y_BCHW, skip_BCHW)
            assert isinstance(block, DecoderBlock)
            y_BCHW = block.dropout(block.conv2(block.conv1(y_BCHW)))
        return cast(Tensor, self.model.segmentation_head(y_BCHW))

    def _maps(self, x_BTCHW: Tensor) -> list[Tensor]:
        """The encoder's five maps with the days merged, finest first."""
        encoder = self.model.encoder
        if not self.ltae:
            return cast(list[Tensor], encoder(x_BTCHW.flatten(1, 2).repeat(1, self.members, 1, 1)))
        by_day = encoder(x_BTCHW.flatten(0, 1).repeat(1, self.members, 1, 1))
        *skips, deepest = (map_.unflatten(0, x_BTCHW.shape[:2]) for map_ in by_day)
        merged = [ltae(part) for ltae, part in zip(self.ltae, deepest.chunk(self.members, 2), strict=True)]
        finer = [
            torch.cat(
                [
                    merge_days(part, weight)
                    for part, (_, weight) in zip(skip.chunk(self.members, 2), merged, strict=True)
                ],
                dim=1,
            )
            for skip in skips
        ]
        return [*finer, torch.cat([deep for deep, _ in merged], dim=1)]

    def _beside(self, x_BCHW: Tensor, skip_BCHW: Tensor) -> Tensor:
        """Each member's map beside its own skip."""
        pairs = zip(x_BCHW.chunk(self.members, 1), skip_BCHW.chunk(self.members, 1), strict=True)
        return torch.cat([part for pair in pairs for part in pair], dim=1)


def pack_states(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state of a packed backbone from those of separate ones."""
    packed: dict[str, Tensor] = {}
    for name, first in states[0].items():
        if name.startswith("ltae."):
            packed |= {f"ltae.{k}.{name.removeprefix('ltae.')}": state[name] for k, state in enumerate(states)}
        else:
            packed[name] = torch.cat([state[name] for state in states]) if first.ndim else first
    return packed


def _grouped(module: nn.Module, members: int) -> None:
    """The module with every convolution and batch norm in as many groups as there are members, in place."""
    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            channels = child.in_channels * members, child.out_channels * members
            how = {"stride": child.stride, "padding": child.padding, "bias": child.bias is not None}
            grown: nn.Module = nn.Conv2d(*channels, child.kernel_size, groups=members, **how)  # type: ignore[arg-type]
        elif isinstance(child, nn.BatchNorm2d):
            grown = nn.BatchNorm2d(child.num_features * members)
        else:
            _grouped(child, members)
            continue
        setattr(module, name, grown)

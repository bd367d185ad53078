"""Lightweight temporal attention (L-TAE): which days matter, pixel by pixel.

The encoder sees each day alone. Here the days of its deepest map are merged by 16 attention heads, and the
same attention, upsampled, merges the days of the finer maps that the decoder takes as skips.

Shape suffixes: B samples, T days, C channels, H height, W width; N = B·H·W pixels of the deepest map,
K heads, E features per head, D = K·E features in all. Attribute names are those of the released
checkpoints' keys (`inconv`, `attention_heads.Q`, `attention_heads.fc1_k`, `mlp.0`, ...).
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["HEADS", "TemporalAttention", "merge_days", "position_code"]

HEADS = 16
KEY_SIZE = 4
_LONGEST_PERIOD = 1000.0


def position_code(days: int, size: int) -> Tensor:
    """Sinusoidal code (T, E) of the day's index: sine on even places, cosine on odd ones."""
    place_E = torch.arange(size)
    period_E = _LONGEST_PERIOD ** (2.0 * (place_E // 2) / size)
    angle_TE = torch.arange(days, dtype=torch.float32)[:, None] / period_E
    return torch.where(place_E % 2 == 0, angle_TE.sin(), angle_TE.cos())


class AttentionHeads(nn.Module):
    """One learned query per head, asked of every day's key."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.Q = nn.Parameter(torch.empty(HEADS, KEY_SIZE))
        self.fc1_k = nn.Linear(features, HEADS * KEY_SIZE)
        self.dropout = nn.Dropout(0.1)
        bound = (6.0 / KEY_SIZE) ** 0.5  # a variance of 2 / KEY_SIZE
        for weight in (self.Q, self.fc1_k.weight):
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, x_NTD: Tensor) -> Tensor:
        """Weight of each day for each head (N, K, T); over the days they sum to one."""
        key_NTKd = self.fc1_k(x_NTD).unflatten(-1, (HEADS, KEY_SIZE))
        score_NKT = (key_NTKd * self.Q).sum(-1).transpose(1, 2) / KEY_SIZE**0.5
        return cast(Tensor, self.dropout(score_NKT.softmax(-1)))


class TemporalAttention(nn.Module):
    """Merges the days of the deepest map.

    Parameters
    ----------
    channels
        Channels of the map, in and out.
    features
        Features of the attention, D.
    """

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.in_norm = nn.GroupNorm(HEADS, channels)
        self.inconv = nn.Conv1d(channels, features, 1)
        self.attention_heads = AttentionHeads(features)
        self.mlp = nn.Sequential(nn.Linear(features, channels), nn.BatchNorm1d(channels), nn.ReLU(inplace=True))
        self.dropout = nn.Dropout(0.2)
        self.out_norm = nn.GroupNorm(HEADS, channels)

    def forward(self, x_BTCHW: Tensor) -> tuple[Tensor, Tensor]:
        """The merged map (B, C, H, W) and each day's weight by head (B, T, K, H, W)."""
        # back to images by example, not by numbers, which a graph for ONNX would keep as they are while it is drawn
        x_BHWCT = x_BTCHW.permute(0, 3, 4, 2, 1)
        x_NCT = x_BHWCT.flatten(0, 2)
        x_NTD = self.inconv(self.in_norm(x_NCT)).transpose(1, 2)
        value_NTKE = x_NTD.unflatten(-1, (HEADS, -1))
        # every head's slice gets the same code of the day
        code_TE = position_code(x_BTCHW.shape[1], value_NTKE.shape[-1]).to(x_NTD)
        value_NTKE = value_NTKE + code_TE[:, None]

        weight_NKT = self.attention_heads(value_NTKE.flatten(2))
        merged_NKE = torch.einsum("nkt,ntke->nke", weight_NKT, value_NTKE)
        y_NC = self.out_norm(self.dropout(self.mlp(merged_NKE.flatten(1))))
        y_BCHW = y_NC.reshape_as(x_BHWCT[..., 0]).permute(0, 3, 1, 2)
        return y_BCHW, weight_NKT.reshape_as(x_BHWCT[..., :HEADS, :]).permute(0, 4, 3, 1, 2)


def merge_days(x_BTCHW: Tensor, weight_BTKhw: Tensor) -> Tensor:
    """A finer map's days merged: head k's weights, upsampled, weigh the k-th sixteenth of the channels."""
    T, C = x_BTCHW.shape[1:3]
    # A whole factor, not a size: it is the encoder's stride, the same for images of every size
    factor = float(x_BTCHW.shape[-1] // weight_BTKhw.shape[-1])
    # One weight per channel while the weights are small, in the map's own memory layout, and a running sum
    # over days: several times faster than broadcasting heads over channels and summing all days' products.
    weight_BTChw = weight_BTKhw.repeat_interleave(C // HEADS, dim=2)
    channels_last = x_BTCHW.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if channels_last else torch.contiguous_format

    def weight_BCHW(t: int) -> Tensor:
        small_BChw = weight_BTChw[:, t].contiguous(memory_format=layout)
        return F.interpolate(small_BChw, scale_factor=factor, mode="bilinear", align_corners=False)

    y_BCHW = x_BTCHW[:, 0] * weight_BCHW(0)
    for t in range(1, T):
        y_BCHW.addcmul_(x_BTCHW[:, t], weight_BCHW(t))
    return y_BCHW

"""One forward pass of `utae_t5`, fast against plain, and how near it comes to the machine's matrix multiplication.

The plain way encodes one day at a time, in torch's default memory format, with batch norm as its own layer,
and broadcasts the heads' attention over the skips' channels. All ways take turns, round after round, so that
whatever else the machine does meets each of them alike.
"""

import copy
import time
from collections.abc import Callable
from statistics import median

import torch
from tests.benchmarks.rows import show
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from fcer.models.backbones import AttendedDays, build
from fcer.models.inference import fast, predict_logits
from fcer.models.temporal_attention import HEADS

BATCH = 4
SIZE = 128
ROUNDS = 8
MATRIX = 1536


def main() -> None:
    """Print the rows."""
    torch.manual_seed(0)
    backbone = build("utae_t5").eval()
    assert isinstance(backbone, AttendedDays)
    x = torch.randn(BATCH, backbone.days, backbone.spec.channels, SIZE, SIZE)
    channels_last = copy.deepcopy(backbone).to(memory_format=torch.channels_last)
    folded = fast(backbone)
    ways: dict[str, Callable[[], Tensor]] = {
        "one day at a time": lambda: plain_logits(backbone, x),
        "days in the batch": lambda: predict_logits(backbone, x),
        "and channels last": lambda: predict_logits(channels_last, x),
        "and batch norm folded (fast)": lambda: predict_logits(folded, x),
    }
    matrix = torch.randn(MATRIX, MATRIX)
    seconds = take_turns({**ways, "matrix": lambda: matrix @ matrix})
    expected = plain_logits(backbone, x)
    with FlopCounterMode(display=False) as counter:
        plain_logits(backbone, x)
    gflop = counter.get_total_flops() / 1e9
    rate = 2 * MATRIX**3 / 1e9 / seconds["matrix"]

    plain = seconds.pop("one day at a time")
    for name, floor in {
        "days in the batch": None,
        "and channels last": None,
        "and batch norm folded (fast)": 1.35,
    }.items():
        taken, difference = seconds[name], (ways[name]() - expected).abs().max().item()
        note = f"{gflop / taken:.0f} GFLOP/s, {gflop / taken / rate:.0%} of matmul, differs by {difference:.0e}"
        show(f"forward pass of utae_t5, batch {BATCH}: {name}", taken, plain, floor, note)


@torch.inference_mode()
def plain_logits(backbone: AttendedDays, x_BTCHW: Tensor) -> Tensor:
    """The backbone's definition, written down without a thought for speed."""
    days = [backbone.model.encoder(x_BTCHW[:, t]) for t in range(x_BTCHW.shape[1])]
    *skips, deepest = [torch.stack(maps, dim=1) for maps in zip(*days, strict=True)]
    merged, weight_BTKhw = backbone.ltae(deepest)
    maps = [*(plain_merge(skip, weight_BTKhw) for skip in skips), merged]
    return backbone.model.segmentation_head(backbone.decoder(maps))


def plain_merge(x_BTCHW: Tensor, weight_BTKhw: Tensor) -> Tensor:
    """Head k's attention, upsampled, on the k-th sixteenth of the channels; summed over days."""
    B, T, _, H, W = x_BTCHW.shape
    weight = F.interpolate(weight_BTKhw.flatten(0, 1), size=(H, W), mode="bilinear", align_corners=False)
    weighted = x_BTCHW.unflatten(2, (HEADS, -1)) * weight.view(B, T, HEADS, 1, H, W)
    return weighted.sum(1).flatten(1, 2)


def take_turns(ways: dict[str, Callable[[], Tensor]]) -> dict[str, float]:
    """Median seconds of each, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    return {name: median(taken[1:]) for name, taken in times.items()}

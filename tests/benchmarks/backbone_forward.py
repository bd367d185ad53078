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
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from fcer.models.backbones import AttendedDays, build
from fcer.models.inference import fast, predict_logits
from fcer.models.temporal_attention import HEADS

BATCH = 4
SIZE = 128
ROUNDS = 15
MATRIX = 1536


def main() -> None:
    """Print the table."""
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

    print(f"utae_t5, batch {BATCH}, {SIZE}x{SIZE}, {torch.get_num_threads()} threads, {gflop:.1f} GFLOP a batch")
    print(f"{'way':30} {'ms':>6} {'ratio':>6} {'GFLOP/s':>8} {'of matmul':>10} {'largest difference':>19}")
    slowest = seconds["one day at a time"]
    for name, way in ways.items():
        taken, difference = seconds[name], (way() - expected).abs().max().item()
        print(
            f"{name:30} {1000 * taken:6.0f} {slowest / taken:6.2f} {gflop / taken:8.0f} "
            f"{gflop / taken / rate:10.0%} {difference:19.1e}"
        )
    print(f"matrix multiplication, {MATRIX}x{MATRIX}: {rate:.0f} GFLOP/s; the fast way should reach a ratio of 1.35")


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


if __name__ == "__main__":
    main()

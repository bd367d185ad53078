"""Training a member: one step and one epoch from files, against the loop that anyone would write first.

The plain loop has a `DataLoader` of whole images, torch's default memory format, its own optimiser as it comes and one
`.item()` a batch. Both train the same weights on the same batches; how far the losses are apart is printed.
"""

import copy
import tempfile
from pathlib import Path

import torch
from tests.benchmarks.rows import hold, show
from tests.benchmarks.sample_reading import plainly
from tests.benchmarks.timing import seconds
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.folds import WSTS
from fcer.data.normalization import released
from fcer.data.samples import Samples
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.backbones import Backbone, architecture
from fcer.training.batches import load
from fcer.training.distributed import World
from fcer.training.learner import Learner, make_learner
from fcer.training.settings import MemberSettings

BATCH, CROP = 4, 128
CASES = [(arch, width) for width in (1.0, 0.125) for arch in ("utae_t5", "unet_t5", "unet_t1")]
EPOCH_FLOORS, EPOCH_AIMS = {1.0: 1.15, 0.125: 1.3}, {1.0: 1.5, 0.125: 2.0}
"""By width."""


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as folder:
        synthesize(Recipe((2018,), 2, (200, 240), (13, 13), 0), Path(folder), workers=1)
        for arch, width in CASES:
            trained(Path(folder), arch, width)


class Plain:
    """A member as a tutorial would train it."""

    def __init__(self, backbone: Backbone, settings: MemberSettings) -> None:
        self.backbone = copy.deepcopy(backbone).to(memory_format=torch.contiguous_format)
        self.settings = settings
        self.optimizer = torch.optim.AdamW(self.backbone.parameters(), settings.lr, weight_decay=settings.weight_decay)

    def step(self, x: Tensor, y: Tensor) -> float:
        self.optimizer.zero_grad()
        weight = torch.tensor(self.settings.pos_weight)
        loss = F.binary_cross_entropy_with_logits(self.backbone(x), y, pos_weight=weight)
        loss.backward()
        nn.utils.clip_grad_norm_(self.backbone.parameters(), self.settings.clip_norm)
        self.optimizer.step()
        return loss.item()

    def epoch(self, samples: Samples) -> float:
        loader = DataLoader(_Whole(samples), batch_size=BATCH)
        return sum(self.step(x, y[:, None].float()) for x, y in loader)


class _Whole(torch.utils.data.Dataset):
    """Each sample by way of all channels of the whole image."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[object, object]:
        return plainly(self.samples, index)


def trained(fires: Path, arch: str, width: float) -> None:
    """The rows of one backbone."""
    features = feature_indices("vegetation")
    settings = MemberSettings(arch=arch, width=width, features=features, crop=CROP, batch_size=BATCH, dropout=0.0)
    how = {"days": architecture(arch).days, "features": features, "normalization": released((2018, 2019))}
    samples = Samples(open_catalog(fires).fires, crop=CROP, augment=True, leading=5, **how)
    learner = make_learner(settings, WSTS[0], torch.device("cpu"), World(0, 1, 0))
    learner.model.train()
    plain = Plain(learner.backbone, settings)
    plain.backbone.train()
    batches = [list(range(start, start + BATCH)) for start in range(0, len(samples), BATCH)]
    first = next(load(samples, batches[:1]))
    apart = abs(float(learner.step(*first, settings)) - plain.step(*first))
    repeats = 2 if width == 1 else 3
    ours, theirs, forward = seconds(
        lambda: learner.step(*first, settings),
        lambda: plain.step(*first),
        lambda: _forward(learner, first[0]),
        repeats=repeats,
    )
    title = f"{arch}, width {width:g}, batch {BATCH} of {CROP} px"
    show(f"one training step, {title}", ours, theirs, 1.0, f"losses differ by {apart:.0e}")
    hold(f"  that step in forward passes, {arch} {width:g}", ours / forward, 1.3 * 3 if width == 1 else None)
    ours, theirs = seconds(
        lambda: [learner.step(x, y, settings) for x, y in load(samples, batches)],
        lambda: plain.epoch(samples),
        repeats=repeats - 1,
    )
    what = f"one epoch from files, {len(samples)} samples, {title}"
    show(what, ours, theirs, EPOCH_FLOORS[width], aim=EPOCH_AIMS[width])
    if (arch, width) == CASES[0]:
        in_half(learner, first, settings)


@torch.no_grad()
def _forward(learner: Learner, x: Tensor) -> Tensor:
    return learner.model(x)


def in_half(learner: Learner, batch: tuple[Tensor, Tensor], settings: MemberSettings) -> None:
    """What `bf16` would save; promised only where the processor has instructions for it."""
    flags = Path("/proc/cpuinfo").read_text()
    has = "avx512_bf16" in flags or "amx_bf16" in flags

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            learner.step(*batch, settings)

    ours, theirs = seconds(step, lambda: learner.step(*batch, settings), repeats=2)
    with torch.no_grad():
        learner.model.eval()
        whole = learner.model(batch[0]).sigmoid()
        with torch.autocast("cpu", torch.bfloat16):
            half = learner.model(batch[0]).float().sigmoid()
    off = float((whole - half).abs().max())
    note = f"probabilities differ by {off:.3f} at most" + ("" if has else "; this processor has no bf16")
    show(f"one training step in bf16 against fp32, {settings.arch}", ours, theirs, 1.2 if has else None, note)

"""Reading cached features: shards mapped into memory, from which batches and lists of pixels are gathered.

Shape suffixes: N samples, B samples of a batch, K passes of the teacher, F features, P pixels of an image.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fcer.core.arrays import FloatArray
from fcer.core.disagreement import mutual_information, normalized_std, predictive_entropy
from fcer.errors import FcerError

__all__ = ["TARGETS", "CachedBlock", "CachedSplit"]

TARGETS: Mapping[str, Callable[[NDArray[np.float64]], FloatArray]] = MappingProxyType(
    {"std": normalized_std, "mutual_information": mutual_information, "entropy": predictive_entropy}
)
"""What the student may be taught, from the passes (K, ...) of its teacher; each from 0 to 1."""


class CachedBlock(NamedTuple):
    """Consecutive samples as they lie on disk, pixels in a row."""

    features_BFP: Tensor
    """Half precision."""
    logits_BP: Tensor
    """Of the backbone."""
    passes_BKP: Tensor
    """Probabilities; half precision."""
    y_BP: Tensor
    """0 or 1."""


class CachedSplit:
    """All samples of a split. The system reads what is used and drops what memory cannot hold."""

    def __init__(self, shards: Sequence[Path]) -> None:
        self._blocks = [_map(path) for path in shards]
        self._starts = np.cumsum([0, *(len(block.y_BP) for block in self._blocks)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def features(self) -> int:
        """Features of a pixel."""
        return int(self._blocks[0].features_BFP.shape[1])

    @property
    def pixels(self) -> int:
        """Of one image."""
        return int(self._blocks[0].y_BP.shape[1])

    @property
    def side(self) -> int:
        """Of the square images, in px."""
        return math.isqrt(self.pixels)

    def blocks(self) -> Iterator[CachedBlock]:
        """Shard after shard."""
        return iter(self._blocks)

    def gather(self, indices: Sequence[int], out_BFP: Tensor) -> Tensor:
        """Features of some samples in single precision, written to `out_BFP`; with room for it, then their logits.

        Memory that is used again and again costs far less than fresh memory.
        """
        for row, index in zip(out_BFP, indices, strict=False):
            shard = int(np.searchsorted(self._starts, index, side="right")) - 1
            block, place = self._blocks[shard], index - int(self._starts[shard])
            row[: self.features].copy_(block.features_BFP[place])
            if len(row) > self.features:
                row[self.features].copy_(block.logits_BP[place])
        return out_BFP[: len(indices)]

    def targets(self, kind: str) -> Tensor:
        """The teacher's uncertainty (N, P) of every sample, one of `TARGETS`."""
        measure = TARGETS[kind]
        parts = [measure(block.passes_BKP.transpose(0, 1).double().numpy()) for block in self._blocks]
        return torch.from_numpy(np.concatenate(parts).astype(np.float32))


def _map(path: Path) -> CachedBlock:
    """The shard's tensors, mapped: nothing is read before it is used."""
    try:
        with safe_open(path, framework="pt") as file:
            arrays = {name: file.get_tensor(name) for name in ("features", "logits", "passes", "y")}
    except (SafetensorError, OSError) as error:
        raise FcerError(f"{path}: cannot be read ({error}); remove it, and it is computed again") from None
    return CachedBlock(
        arrays["features"].flatten(2),
        arrays["logits"].flatten(1),
        arrays["passes"].flatten(2),
        arrays["y"].flatten(1),
    )

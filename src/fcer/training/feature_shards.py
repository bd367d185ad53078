"""Reading cached features: shards mapped into memory, from which batches and lists of pixels are gathered.

Shape suffixes: N samples, B samples of a batch, K passes of the teacher, F features, R numbers that a head reads of a
pixel, W windows around it, P pixels of an image, Q some of them.
"""

import copy
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
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
from fcer.errors import ConfigError, FcerError
from fcer.models.student import CONTEXT_ROWS, HeadSpec, fire_around, probability_around

__all__ = ["ERROR", "TARGETS", "THIN", "CachedBlock", "CachedSplit"]

TARGETS: Mapping[str, Callable[[NDArray[np.float64]], FloatArray]] = MappingProxyType(
    {"std": normalized_std, "mutual_information": mutual_information, "entropy": predictive_entropy}
)
"""What the student may be taught, from the passes (K, ...) of its teacher; each from 0 to 1."""


ERROR = "error"
"""In place of a teacher's uncertainty: the backbone's own errors."""

THIN = 17
"""Every so many pixels are enough to follow a loss by; no divisor of an image's side, so that all columns are met."""

_WIDE_BYTES = 1 << 30
"""Features that take no more in single precision are converted once, not in every epoch."""


class CachedBlock(NamedTuple):
    """Consecutive samples as they lie on disk, pixels in a row."""

    features_BFP: Tensor
    """Half precision, but where `widened`."""
    logits_BP: Tensor
    """Of the backbone."""
    passes_BKP: Tensor
    """Probabilities of the members, or as the only one another teacher's uncertainty; half precision."""
    y_BP: Tensor
    """0 or 1."""
    today_BP: Tensor
    """Whether the last day seen has fire; 0 or 1."""


class CachedSplit:
    """All samples of a split. The system reads what is used and drops what memory cannot hold."""

    def __init__(self, shards: Sequence[Path]) -> None:
        self._blocks = [_map(path) for path in shards]
        self._starts = [0, *accumulate(len(block.y_BP) for block in self._blocks)]

    def __len__(self) -> int:
        return self._starts[-1]

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

    @property
    def has_one_teacher(self) -> bool:
        """Whether what is taught is another method's uncertainty, not the ensemble's members."""
        return int(self._blocks[0].passes_BKP.shape[1]) == 1

    def blocks(self) -> Iterator[CachedBlock]:
        """Shard after shard."""
        return iter(self._blocks)

    def widened(self) -> "CachedSplit":
        """The same with features in single precision, in memory, where they are few enough; else itself."""
        if len(self) * self.features * self.pixels * 4 > _WIDE_BYTES:
            return self
        wide = copy.copy(self)
        wide._blocks = [block._replace(features_BFP=block.features_BFP.float()) for block in self._blocks]
        return wide

    def sample(self, index: int) -> tuple[Tensor, ...]:
        """Features (F, P), logits (P), passes (K, P), what burnt and what burns today (P), as they lie on disk."""
        block, place = self._locate(index)
        return tuple(tensor[place] for tensor in block)

    def _locate(self, index: int) -> tuple[CachedBlock, int]:
        """The shard that holds a sample, and its place there."""
        shard = bisect_right(self._starts, index) - 1
        return self._blocks[shard], index - self._starts[shard]

    def gather(self, indices: Sequence[int], spec: HeadSpec, room_BRP: Tensor) -> list[Tensor]:
        """A head's inputs (R, P) of some samples in single precision.

        What has to be converted is written to `room_BRP`: memory that is used again costs far less than fresh memory.
        """
        gathered, alone = [], spec == HeadSpec(self.features, spec.hidden)
        for index, room_RP in zip(indices, room_BRP, strict=False):
            block, place = self._locate(index)
            features_FP = block.features_BFP[place]
            if alone and features_FP.dtype == torch.float32:
                gathered.append(features_FP)
                continue
            parts = [features_FP] if spec.decoder else []
            if spec.logit:
                parts.append(block.logits_BP[place][None])
            if spec.context or spec.fire:
                around_WP = self._context_NWP[index]
                parts += [around_WP[:CONTEXT_ROWS]] if spec.context else []
                parts += [around_WP[CONTEXT_ROWS:]] if spec.fire else []
            start = 0
            for part_RP in parts:
                room_RP[start : start + len(part_RP)].copy_(part_RP)
                start += len(part_RP)
            gathered.append(room_RP)
        return gathered

    @cached_property
    def _context_NWP(self) -> Tensor:
        """What is around each pixel of every sample: too slow to compute in every epoch."""
        return torch.cat([self.context(block).half() for block in self._blocks])

    def context(self, block: CachedBlock) -> Tensor:
        """What is around each pixel (B, windows, P): the backbone's mean probability, then today's fire."""
        logits_BHW, today_BHW = (maps.view(-1, self.side, self.side) for maps in (block.logits_BP, block.today_BP))
        around = [
            torch.cat([probability_around(logits_HW[None]), fire_around(today_HW[None])], dim=1)
            for logits_HW, today_HW in zip(logits_BHW, today_BHW, strict=True)
        ]
        return torch.cat(around).flatten(2)

    def thinned(self) -> Tensor:
        """All numbers of every `THIN`th pixel of every sample (N, R, Q): features, logit, what is around it."""
        parts = [
            torch.cat([block.features_BFP.float(), block.logits_BP[:, None], self.context(block)], dim=1)[..., ::THIN]
            for block in self._blocks
        ]
        return torch.cat(parts)

    def targets(self, kind: str) -> Tensor:
        """The teacher's uncertainty (N, P) of every sample, one of `TARGETS`."""
        if kind == ERROR:
            raise ConfigError(
                "head_target: error is learnt on the validation years, fire by fire, not from a teacher; "
                "choose another target here"
            )
        if self.has_one_teacher:
            return torch.cat([block.passes_BKP[:, 0].float() for block in self._blocks])
        measure = TARGETS[kind]
        passes = (block.passes_BKP.transpose(0, 1).double().numpy() for block in self._blocks)
        return torch.from_numpy(np.concatenate([measure(some).astype(np.float32) for some in passes]))


def _map(path: Path) -> CachedBlock:
    """The shard's tensors, mapped: nothing is read before it is used."""
    try:
        with safe_open(path, framework="pt") as file:
            arrays = {name: file.get_tensor(name) for name in ("features", "logits", "passes", "y", "today")}
    except (SafetensorError, OSError) as error:
        raise FcerError(f"{path}: cannot be read ({error}); remove it, and it is computed again") from None
    return CachedBlock(
        arrays["features"].flatten(2),
        arrays["logits"].flatten(1),
        arrays["passes"].flatten(2),
        arrays["y"].flatten(1),
        arrays["today"].flatten(1),
    )

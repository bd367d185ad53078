"""A cached split that never lay on disk."""

import numpy as np
import torch

import backbone_cases  # noqa: F401  (one thread for torch)
from fcer.training.feature_shards import CachedBlock, CachedSplit


class InMemory(CachedSplit):
    """Samples of 16 x 16 px whose third feature is large where the backbone errs."""

    def __init__(self, samples: int, seed: int = 0, features: int = 4) -> None:
        rng = np.random.default_rng(seed)
        y = np.zeros((samples, 16, 16), np.uint8)
        y[:, 6:10, 5:12] = 1
        y[0] = 0  # one image without fire
        y = y.reshape(samples, 256)
        logits = np.where(y, 1.0, -1.0) + rng.normal(size=y.shape)
        wrong = (logits > 0) != y
        values = rng.normal(size=(samples, features, 256)) * 0.5
        values[:, 2] += wrong
        passes = 1 / (1 + np.exp(-logits[:, None] + rng.normal(size=(samples, 3, 256)) * (0.2 + wrong[:, None])))
        block = CachedBlock(
            torch.from_numpy(values).half(),
            torch.from_numpy(logits).float(),
            torch.from_numpy(passes).half(),
            torch.from_numpy(y),
            torch.from_numpy(np.roll(y, 1, axis=1)),
        )
        cut = samples // 2
        self._blocks = [CachedBlock(*(t[:cut] for t in block)), CachedBlock(*(t[cut:] for t in block))]
        self._starts = np.array([0, cut, samples])

"""The closed formulas behind tests/data/golden: weights and inputs that anyone can rebuild, none of them random."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["backbone_input", "state_dict"]


def _values(count: int, sequence: int) -> NDArray[np.float64]:
    """`count` values in [-1, 1) that look random: the sawtooth of a large sine."""
    large = np.abs(np.sin(12.9898 * np.arange(count, dtype=np.float64) + 78.233 * sequence)) * 43758.5453
    return 2 * (large - np.floor(large)) - 1


def state_dict(shapes: dict[str, list[int]], phase: int = 0) -> dict[str, NDArray[np.float32 | np.int64]]:
    """A value for every weight: keys in sorted order take one sequence each, counted from `phase`.

    Entries of the loss are left out, and counts of batches stay 0 and take no sequence.
    """
    weights: dict[str, NDArray[np.float32 | np.int64]] = {}
    sequence = phase
    for key, shape in sorted(shapes.items()):
        if key.startswith("loss"):
            continue
        if key.endswith("num_batches_tracked"):
            weights[key] = np.zeros(shape, np.int64)
            continue
        count = math.prod(shape)
        values = _values(count, sequence).reshape(shape)
        sequence += 1
        if key.endswith("running_var"):
            values = 1 + 0.2 * values
        elif len(shape) > 1:
            values = np.sqrt(6.0 / (count / shape[0])) * values
        elif key.endswith("weight"):
            values = 1 + 0.1 * values
        else:  # biases and running means
            values = 0.1 * values
        weights[key] = values.astype(np.float32)
    return weights


def backbone_input(
    batch: int = 2, days: int = 5, channels: int = 7, height: int = 128, width: int = 128
) -> NDArray[np.float32]:
    """The input (batch, days, channels, height, width) that the golden logits belong to."""
    b, t, c, i, j = np.ogrid[:batch, :days, :channels, :height, :width]
    phase = 0.05 * (i + 1) * np.sqrt(c + 1) + 0.07 * (j + 1) + 0.9 * t + 2.1 * b + 0.3 * c
    return np.sin(phase).astype(np.float32)

"""What a model was given, in a few numbers: enough to see later that inputs drift from those it was made on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, ANGLES, CHANNELS, LAND_COVER
from fcer.data.normalization import Normalization

__all__ = ["InputSummary", "summarise_input"]


class InputSummary(NamedTuple):
    """Of one sample's raw days."""

    lacking: tuple[str, ...]
    """Channels of which the latest day holds no value at all."""
    means: dict[str, float]
    """Mean of each channel that has values, standardised as the model sees it; 0 is the training data's own.

    Active fire is left out, since fires are of all sizes, and land cover, whose numbers are names.
    """


def summarise_input(raw: NDArray[np.float32], channels: Sequence[int], normalization: Normalization) -> InputSummary:
    """Of raw days (days, channels, rows, columns)."""
    lacking, means = [], {}
    for k, channel in enumerate(channels):
        if channel == ACTIVE_FIRE:  # no detection and no look are the same in files
            continue
        known = ~np.isnan(raw[:, k])
        if not known[-1].any():
            lacking.append(CHANNELS[channel])
        if channel != LAND_COVER and known.any():
            values = raw[:, k][known].astype(np.float64)
            values = np.sin(np.deg2rad(values)) if channel in ANGLES else values
            means[CHANNELS[channel]] = float((values.mean() - normalization.mean[channel]) / normalization.std[channel])
    return InputSummary(tuple(lacking), means)

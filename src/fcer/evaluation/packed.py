"""Histograms as they travel: most of their cells are empty."""

from typing import NamedTuple

import numpy as np

from fcer.core.arrays import IntArray

__all__ = ["Packed", "pack"]


class Packed(NamedTuple):
    """The cells of a histogram that hold anything, and what they hold."""

    cells: IntArray
    counts: IntArray

    def add_to(self, histogram: IntArray) -> None:
        """Add to a histogram of the same shape."""
        histogram.reshape(-1)[self.cells] += self.counts


def pack(histogram: IntArray) -> Packed:
    """Keep what is not empty; a shard's counts fit in 32 bits."""
    flat = histogram.reshape(-1)
    cells = np.flatnonzero(flat)
    return Packed(cells.astype(np.uint32), flat[cells].astype(np.uint32))

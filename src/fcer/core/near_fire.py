"""The pixels near fire, listed once for all methods, ring by ring."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.rank_counts import cells_of
from fcer.core.regions import pixels_inside, ring_index
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.threshold_sweep import exceeded, thresholds_around

__all__ = ["NearFire", "list_near_fire"]


@dataclass(frozen=True)
class NearFire:
    """The pixels of fire images within the largest finite radius, and the false alarms beyond it.

    Positions count the pixels of these images, image by image, row by row; padding is not among them.
    """

    radii: tuple[float, ...]
    image_pixels: IntArray
    """How many pixels each image has."""
    position: IntArray
    ring: IntArray
    burnt: BoolArray
    predicted: BoolArray
    """Where the reference predicts fire."""
    far_alarm: IntArray
    """What burnt is near fire: beyond, the reference errs only where it predicts fire."""
    above: IntArray
    """How many of `thresholds_around` the threshold the reference's probability is above."""

    @property
    def n_images(self) -> int:
        """How many images there are."""
        return len(self.image_pixels)

    @property
    def n_pixels(self) -> int:
        """How many pixels they have."""
        return int(self.image_pixels.sum())

    @property
    def edges(self) -> IntArray:
        """Where each image's part of the list begins, and where the last one's ends."""
        return np.searchsorted(self.position, np.append(0, np.cumsum(self.image_pixels)))

    @property
    def image(self) -> IntArray:
        """Which of these images each listed pixel belongs to."""
        return np.repeat(np.arange(self.n_images), np.diff(self.edges))

    @cached_property
    def cell(self) -> IntArray:
        """The kind of each listed pixel."""
        return cells_of(self.predicted, self.predicted != self.burnt)

    def within(self, radius: float) -> BoolArray:
        """Which of the listed pixels are in the region of one of the radii."""
        return np.asarray(self.ring <= self.radii.index(radius))


def list_near_fire(
    burnt: BoolArray,
    reference_prob: FloatArray,
    radii: Sequence[float],
    inside: BoolArray | None = None,
    threshold: float = FIRE_THRESHOLD,
) -> NearFire:
    """List the pixels of fire images (N, H, W) within the largest of the finite, ascending `radii`.

    Where images are padded to one size, `inside` says which pixels are theirs.
    """
    stacks = ring_index(burnt, radii), reference_prob > threshold, burnt, reference_prob
    ring, predicted, is_burnt, prob = (pixels_inside(stack, inside) for stack in stacks)
    is_near = ring < len(radii)
    position = np.flatnonzero(is_near)
    return NearFire(
        radii=tuple(radii),
        image_pixels=np.full(len(burnt), burnt[:1].size) if inside is None else np.count_nonzero(inside, axis=(1, 2)),
        position=position,
        ring=ring[position],
        burnt=is_burnt[position],
        predicted=predicted[position],
        far_alarm=np.flatnonzero(predicted & ~is_near),
        above=exceeded(prob[position], thresholds_around(threshold)),
    )

"""The pixels near fire, listed once for all methods, ring by ring."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.regions import pixels_inside, ring_index
from fcer.core.segmentation import FIRE_THRESHOLD

__all__ = ["NearFire", "list_near_fire"]


@dataclass(frozen=True)
class NearFire:
    """The pixels of fire images within the largest finite radius, and the errors beyond it.

    Positions count the pixels of all fire images, image by image, row by row; padding is not among them.
    """

    radii: tuple[float, ...]
    image_pixels: IntArray
    """How many pixels each fire image has."""
    position: IntArray
    ring: IntArray
    fire: BoolArray
    error: BoolArray
    far_error: IntArray

    @property
    def n_images(self) -> int:
        """How many fire images there are."""
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
        """The fire image that each listed pixel belongs to."""
        return np.repeat(np.arange(self.n_images), np.diff(self.edges))

    @classmethod
    def join(cls, pieces: Sequence["NearFire"]) -> "NearFire":
        """One list for the images of all pieces, in their order; the pieces share radii."""
        offsets = np.cumsum([0] + [piece.n_pixels for piece in pieces])
        return cls(
            pieces[0].radii,
            np.concatenate([piece.image_pixels for piece in pieces]),
            np.concatenate([piece.position + o for piece, o in zip(pieces, offsets, strict=False)]),
            np.concatenate([piece.ring for piece in pieces]),
            np.concatenate([piece.fire for piece in pieces]),
            np.concatenate([piece.error for piece in pieces]),
            np.concatenate([piece.far_error + o for piece, o in zip(pieces, offsets, strict=False)]),
        )


def list_near_fire(
    fire: BoolArray, reference_prob: FloatArray, radii: Sequence[float], inside: BoolArray | None = None
) -> NearFire:
    """List the pixels of fire images (N, H, W) within the largest of the finite, ascending `radii`.

    Where images are padded to one size, `inside` says which pixels are theirs.
    """
    rings = ring_index(fire, radii) if radii else np.zeros(fire.shape, dtype=np.uint8)
    wrong = (reference_prob > FIRE_THRESHOLD) != fire
    ring, error, burnt = (pixels_inside(stack, inside) for stack in (rings, wrong, fire))
    is_near = ring < len(radii)
    position = np.flatnonzero(is_near)
    return NearFire(
        radii=tuple(radii),
        image_pixels=np.full(len(fire), fire[:1].size) if inside is None else np.count_nonzero(inside, axis=(1, 2)),
        position=position,
        ring=ring[position],
        fire=burnt[position],
        error=error[position],
        far_error=np.flatnonzero(error & ~is_near),
    )

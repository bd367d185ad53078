"""What training sees of a sample: a random crop that prefers fire, flipped and turned, angles along with it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ANGLES

__all__ = ["View", "draw_view", "turn"]


class View(NamedTuple):
    """One way to look at an image: where to cut, and how to flip and turn what was cut."""

    top: int
    left: int
    mirrored: bool
    """East and west swapped."""
    upside_down: bool
    """North and south swapped."""
    quarter_turns: int
    """Counter-clockwise, after the flips."""


def draw_view(
    rng: np.random.Generator, label: NDArray[np.bool_], burning: NDArray[np.bool_], crop: int, tries: int = 10
) -> View:
    """The best of `tries` random crops by fire in the label, then by fire in the input days, and random flips.

    Most random crops of a large image would hold no fire at all and teach little.
    """
    height, width = label.shape
    tops = rng.integers(0, height - crop, tries, endpoint=True).tolist()
    lefts = rng.integers(0, width - crop, tries, endpoint=True).tolist()

    def fire_inside(corner: tuple[int, int]) -> tuple[int, int]:
        box = (..., slice(corner[0], corner[0] + crop), slice(corner[1], corner[1] + crop))
        return int(np.count_nonzero(label[box])), int(np.count_nonzero(burning[box]))

    top, left = max(zip(tops, lefts, strict=True), key=fire_inside)
    mirrored, upside_down = (bool(flip) for flip in rng.integers(0, 2, 2))
    return View(top, left, mirrored, upside_down, int(rng.integers(0, 4)))


def turn(image: NDArray[np.float32], view: View, angle_channels: Sequence[int] = ()) -> NDArray[np.float32]:
    """Flip and turn (..., rows, columns); `angle_channels` on the third axis from the end hold degrees.

    Degrees are clockwise from north. What pointed east points west in the mirror (a to -a), south becomes
    north upside down (a to 180 - a), and a counter-clockwise quarter turn takes 90 off.
    """
    sign, offset = 1.0, 0.0
    if view.mirrored:
        image = image[..., ::-1]
        sign, offset = -sign, -offset
    if view.upside_down:
        image = image[..., ::-1, :]
        sign, offset = -sign, 180.0 - offset
    image = np.rot90(image, view.quarter_turns, axes=(-2, -1)).copy()
    offset -= 90.0 * view.quarter_turns
    if (sign, offset % 360) != (1.0, 0.0):
        for channel in angle_channels:
            image[..., channel, :, :] = (sign * image[..., channel, :, :] + offset) % 360
    return image


def angle_positions(channels: Sequence[int]) -> list[int]:
    """Where angles stand among the raw channels that were read."""
    return [k for k, channel in enumerate(channels) if channel in ANGLES]

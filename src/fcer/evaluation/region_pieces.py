"""Methods in the regions around fire, as pieces: one for each method and shard, made of counts, sums and rows.

Whatever is counted over pixels is a whole number, and sums of losses are kept as such, image by image: pieces add up
to the same bits in any order, however the images were cut into shards.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.calibration import ECE_BINS, log_losses, width_bin
from fcer.core.codes import N_CODES, codes_of, rounded_codes
from fcer.core.exact_sums import whole_terms
from fcer.core.near_fire import NearFire, list_near_fire
from fcer.core.per_image import ImageScores, image_scores
from fcer.core.regions import pixels_inside
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.evaluation.level_counts import UNC_LEVELS, FireLevels, LevelCounts
from fcer.evaluation.packed import Packed, pack
from fcer.evaluation.shards import Block, Shard, read

__all__ = ["LOSSES", "RegionPiece", "RegionTask", "sweep_shard"]

LOSSES = ("brier", "nll")


class RegionTask(NamedTuple):
    """A shard, whose fire each of its images shows where draws are wanted, and the regions.

    `radii` are finite and ascending, and `anchors` are among them: the first is the anchor itself.
    """

    shard: Shard
    fire: IntArray | None
    reference: str
    radii: tuple[float, ...]
    anchors: tuple[float, ...]

    def __str__(self) -> str:
        return str(self.shard)


@dataclass(frozen=True)
class RegionPiece:
    """One method on one shard's fire images. Rings are those of the radii; the last row is the full image."""

    rings: Packed
    """Right and wrong pixels by code of uncertainty (rings, 2, codes)."""
    full: Packed
    """Wrong and all pixels of the full images by code of uncertainty (2, codes)."""
    rounded: BoolArray
    """Which codes stand for rounded uncertainties."""
    anchor: Packed
    """At the anchor: the method's own errors by code of uncertainty; burnt and all pixels by that of probability."""
    losses: IntArray
    """Brier and NLL in whole terms (2, losses, rings and full)."""
    calibration: IntArray
    """All pixels, and those burnt, by bin of probability (2, rings, bins)."""
    bin_prob: IntArray
    """Probability by bin of it, in whole terms (2, rings and full, bins)."""
    scores: ImageScores
    image_losses: FloatArray
    """Brier and NLL of each fire image at the anchor (losses, images)."""
    levels: FireLevels | None


def sweep_shard(task: RegionTask) -> dict[str, RegionPiece]:
    """A piece for each method; none where no image has fire."""
    counting: dict[str, _Counting] = {}
    for block in read(task.shard, unc=True):
        on_fire = np.flatnonzero(block.fire.any(axis=(1, 2)))
        if not on_fire.size:
            continue
        some = _FireImages.of(block, on_fire, task)
        for method in block.prob:
            prob, unc = (pixels_inside(stack[method][on_fire], some.inside) for stack in (block.prob, block.unc))
            counting.setdefault(method, _Counting(task)).add(some, prob, unc)
    return {method: counted.result() for method, counted in counting.items()}


@dataclass(frozen=True)
class _FireImages:
    """What all methods share on the fire images of a block; pixels are flat, without padding."""

    near: NearFire
    image: IntArray
    """Of each pixel near fire: which of these images it belongs to."""
    in_shard: IntArray
    """Which of the shard's images these are."""
    fire: BoolArray
    inside: BoolArray | None
    error: IntArray
    """Where the reference is wrong."""
    at_anchor: BoolArray

    @classmethod
    def of(cls, block: Block, on_fire: IntArray, task: RegionTask) -> "_FireImages":
        inside = None if block.inside is None else block.inside[on_fire]
        fire = block.fire[on_fire]
        near = list_near_fire(fire, block.prob[task.reference][on_fire], task.radii, inside)
        return cls(
            near,
            near.image,
            block.images.start + on_fire,
            pixels_inside(fire, inside),
            inside,
            np.concatenate([near.position[near.error], near.far_error]),
            near.ring <= task.radii.index(task.anchors[0]),
        )


class _Counting:
    """One method's piece in the making."""

    def __init__(self, task: RegionTask) -> None:
        n_rings = len(task.radii)
        self.task = task
        self.cells: list[IntArray] = []
        self.full, self.anchor = np.zeros((2, N_CODES), np.int64), np.zeros((3, N_CODES), np.int64)
        self.rounded = np.zeros(N_CODES, dtype=bool)
        self.losses = np.zeros((2, len(LOSSES), n_rings + 1), np.int64)
        self.calibration = np.zeros((2, n_rings, ECE_BINS), np.int64)
        self.bin_prob = np.zeros((2, n_rings + 1, ECE_BINS), np.int64)
        self.scores: list[ImageScores] = []
        self.image_losses: list[FloatArray] = []
        self.levels = None if task.fire is None else LevelCounts(task.fire)

    def add(self, some: _FireImages, prob: FloatArray, unc: FloatArray) -> None:
        near = some.near
        codes = codes_of(unc)
        self.rounded[rounded_codes(unc, codes)] = True
        near_codes = codes[near.position]
        self.cells.append((2 * near.ring.astype(np.int32) + near.error) * N_CODES + near_codes)
        self.full += [np.bincount(pixels, minlength=N_CODES) for pixels in (codes[some.error], codes)]
        self.scores.append(image_scores(near, unc[near.position], self.task.anchors))
        self._add_anchor(some, prob[near.position[some.at_anchor]], near_codes[some.at_anchor])
        self._add_losses(some, prob.astype(np.float64))

    def _add_anchor(self, some: _FireImages, prob: FloatArray, unc_codes: IntArray) -> None:
        near, at_anchor = some.near, some.at_anchor
        burnt = near.fire[at_anchor]
        prob_codes, wrong = codes_of(prob), (prob > FIRE_THRESHOLD) != burnt
        chosen = unc_codes[wrong], prob_codes[burnt], prob_codes
        self.anchor += [np.bincount(codes, minlength=N_CODES) for codes in chosen]
        if self.levels is not None:
            image = some.in_shard[some.image[at_anchor]]
            self.levels.add(image, UNC_LEVELS[unc_codes], near.error[at_anchor])

    def _add_losses(self, some: _FireImages, prob: FloatArray) -> None:
        near, n_images, n_rings = some.near, some.near.n_images, len(self.task.radii)
        starts = np.cumsum(near.image_pixels) - near.image_pixels
        cell = some.image * n_rings + near.ring
        at_anchor = []
        for k, losses in enumerate(((prob - some.fire) ** 2, log_losses(some.fire, prob))):
            close = losses[near.position]
            rings = np.bincount(cell, weights=close, minlength=n_images * n_rings).reshape(n_images, n_rings)
            by_image = np.column_stack([rings, np.add.reduceat(losses, starts)])
            self.losses[:, k] += whole_terms(by_image).sum(axis=1)
            image = some.image[some.at_anchor]
            at_anchor.append(np.bincount(image, weights=close[some.at_anchor], minlength=n_images))
        self.image_losses.append(np.array(at_anchor))
        self._add_bins(some, prob, cell)

    def _add_bins(self, some: _FireImages, prob: FloatArray, cell: IntArray) -> None:
        near, n_rings = some.near, len(self.task.radii)
        bins = width_bin(prob, ECE_BINS)
        shape = near.n_images, n_rings, ECE_BINS
        place, size = cell * ECE_BINS + bins[near.position], int(np.prod(shape))
        counts = [np.bincount(cells, minlength=size).reshape(shape) for cells in (place, place[near.fire])]
        self.calibration += np.sum(counts, axis=1)
        bins += np.repeat(np.arange(near.n_images) * ECE_BINS, near.image_pixels)
        rings = np.bincount(place, weights=prob[near.position], minlength=size).reshape(shape)
        full = np.bincount(bins, weights=prob, minlength=near.n_images * ECE_BINS).reshape(-1, 1, ECE_BINS)
        self.bin_prob += whole_terms(np.concatenate([rings, full], axis=1)).sum(axis=1)

    def result(self) -> RegionPiece:
        n_rings = len(self.task.radii)
        rings = np.bincount(np.concatenate(self.cells), minlength=n_rings * 2 * N_CODES)
        return RegionPiece(
            pack(rings),
            pack(self.full),
            self.rounded,
            pack(self.anchor),
            self.losses,
            self.calibration,
            self.bin_prob,
            ImageScores(*(np.concatenate(column) for column in zip(*self.scores, strict=True))),
            np.concatenate(self.image_losses, axis=1),
            None if self.levels is None else self.levels.result(),
        )

"""How well methods find fire, from pieces: one for each shard, which add up in any order."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.codes import N_CODES, codes_of, rounded_codes
from fcer.core.histogram import RankBound, histogram_counts, rank_bound
from fcer.core.ranking import auprc
from fcer.core.regions import pixels_inside
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.surface import SurfaceLosses, surface_losses
from fcer.evaluation.level_counts import PROB_LEVELS, FireLevels, LevelCounts, LevelDraws
from fcer.evaluation.packed import Packed, pack
from fcer.evaluation.shards import Block, Shard, read
from fcer.evaluation.year import MethodSegmentation
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["SegmentationPiece", "SegmentationTask", "SegmentationTotal", "segment_shard"]


class SegmentationTask(NamedTuple):
    """A shard, and whose fire each of its images shows, where draws are wanted."""

    shard: Shard
    fire: IntArray | None

    def __str__(self) -> str:
        return str(self.shard)


@dataclass(frozen=True)
class SegmentationPiece:
    """One method on one shard."""

    codes: Packed
    """Burnt and all pixels by code of probability (2, codes)."""
    rounded: BoolArray
    """Which codes stand for rounded probabilities."""
    counts: IntArray
    """True positives, predicted and burnt pixels (3, images)."""
    surface: FloatArray
    """ASD and Hausdorff-95 (2, images), NaN without fire."""
    levels: FireLevels | None


def segment_shard(task: SegmentationTask) -> dict[str, SegmentationPiece]:
    """A piece for each method."""
    counting: dict[str, _Counting] = {}
    for block in read(task.shard, unc=False):
        for method, prob in block.prob.items():
            counting.setdefault(method, _Counting(task)).add(block, prob)
    return {method: counted.result() for method, counted in counting.items()}


class _Counting:
    """One method's piece in the making."""

    def __init__(self, task: SegmentationTask) -> None:
        n_images = task.shard.n_images
        self.codes, self.rounded = np.zeros((2, N_CODES), dtype=np.int64), np.zeros(N_CODES, dtype=bool)
        self.counts = np.zeros((3, n_images), dtype=np.int64)
        self.surface = np.full((2, n_images), np.nan)
        self.levels = None if task.fire is None else LevelCounts(task.fire)

    def add(self, block: Block, prob: FloatArray) -> None:
        fire, inside = block.fire, block.inside
        predicted = prob > FIRE_THRESHOLD if inside is None else (prob > FIRE_THRESHOLD) & inside
        counts = np.array([np.count_nonzero(m, axis=(1, 2)) for m in (fire & predicted, predicted, fire)])
        self.counts[:, block.images] = counts
        on_fire = np.flatnonzero(counts[2])
        some_inside = None if inside is None else inside[on_fire]
        self.surface[:, block.images.start + on_fire] = surface_losses(predicted[on_fire], fire[on_fire], some_inside)
        prob, burnt = (pixels_inside(stack, inside) for stack in (prob, fire))
        codes = codes_of(prob)
        self.rounded[rounded_codes(prob, codes)] = True
        self.codes += [np.bincount(some, minlength=N_CODES) for some in (codes[burnt], codes)]
        if self.levels is not None:
            image = np.broadcast_to(np.arange(block.images.start, block.images.stop)[:, None, None], fire.shape)
            self.levels.add(pixels_inside(image, inside), PROB_LEVELS[codes], burnt)

    def result(self) -> SegmentationPiece:
        levels = None if self.levels is None else self.levels.result()
        return SegmentationPiece(pack(self.codes), self.rounded, self.counts, self.surface, levels)


class SegmentationTotal:
    """One method on one year, from the pieces of all its shards."""

    def __init__(self, maps: PredictedMaps, draws: IntArray) -> None:
        n_images = maps.shape[0]
        self._n_pixels = maps.n_pixels
        self._codes, self._rounded = np.zeros((2, N_CODES), dtype=np.int64), np.zeros(N_CODES, dtype=bool)
        self._counts = np.zeros((3, n_images), dtype=np.int64)
        self._surface = np.full((2, n_images), np.nan)
        self._draws = LevelDraws(draws)

    def add(self, shard: Shard, piece: SegmentationPiece) -> None:
        """Add a shard's piece; each shard comes once."""
        piece.codes.add_to(self._codes)
        self._rounded |= piece.rounded
        self._counts[:, shard.place] = piece.counts
        self._surface[:, shard.place] = piece.surface
        if piece.levels is not None:
            self._draws.add(piece.levels)

    def result(self) -> tuple[MethodSegmentation, RankBound]:
        """All that was measured, and how far AP may be from that of the exact probabilities."""
        hits, predicted, burnt = self._counts
        on_fire = burnt > 0
        draws = [auprc(counts) for counts in self._draws.counts()]
        measured = MethodSegmentation(
            float(auprc(histogram_counts(*self._codes))),
            hits,
            predicted,
            burnt,
            self._n_pixels,
            SurfaceLosses(*self._surface[:, on_fire]),
            predicted[on_fire] == 0,
            np.concatenate([np.empty(0), *draws]),
        )
        return measured, RankBound(auprc=rank_bound(self._codes[0], self._codes[1], self._rounded).auprc)

"""How well one method finds fire, added up: image by image, and shard by shard, in any order."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.bootstrap import Replicates, Resamples, bootstrap_ratio
from fcer.core.codes import codes_of
from fcer.core.levels import LevelCounts
from fcer.core.rank_bounds import RankBound
from fcer.core.rank_counts import counts_by_level
from fcer.core.rankers import Ranks
from fcer.core.ranking import auprc
from fcer.core.regions import PIXEL_METRES, pixels_inside
from fcer.core.segmentation import Confusion
from fcer.core.surface import SurfaceLosses, surface_losses

__all__ = ["MethodSegmentation", "SegmentationPlan", "SegmentationTotals", "mean_metres", "mean_of"]


class SegmentationPlan(NamedTuple):
    """How pixels are ranked, what predicts fire, and whether draws of fires are wanted."""

    ranks: type[Ranks]
    threshold: float
    draws: bool


@dataclass(frozen=True)
class MethodSegmentation:
    """One method on one year. Counts are per image; surface losses and `missed` per fire image."""

    ap: float
    ap_rows: FloatArray
    """AP of every row of weights of fires; empty without draws."""
    true_positives: IntArray
    predicted: IntArray
    burnt: IntArray
    n_pixels: int
    surface: SurfaceLosses
    missed: BoolArray
    """No fire is predicted, or nothing else although the fire has an edge: there is no edge to measure from."""
    saturated: tuple[float, float] | None
    """Shares of pixels at 0 and at 1, of a map in half precision."""
    bound: RankBound

    @property
    def confusion(self) -> Confusion:
        """Over the whole year."""
        hits, predicted, burnt = (int(a.sum()) for a in (self.true_positives, self.predicted, self.burnt))
        return Confusion(hits, predicted - hits, burnt - hits, self.n_pixels - predicted - burnt + hits)

    @property
    def on_fire(self) -> BoolArray:
        """Which of the year's images show fire."""
        return self.burnt > 0

    @property
    def mean_asd(self) -> float:
        """Pixels; NaN where no fire image has a predicted fire to measure from."""
        return mean_of(self.surface.asd)

    @property
    def mean_hausdorff95(self) -> float:
        """Pixels, likewise."""
        return mean_of(self.surface.hausdorff95)

    def replicates(self, fire: IntArray, resamples: Resamples) -> dict[str, Replicates]:
        """Each metric, once for each draw of fires; `fire` says whose each image is."""
        hits, predicted, burnt, weights = self.true_positives, self.predicted, self.burnt, resamples.weights
        ratios = {
            "precision": (hits, predicted),
            "recall": (hits, burnt),
            "iou": (hits, predicted + burnt - hits),
            "f1": (2 * hits, predicted + burnt),
        }
        rows = {name: bootstrap_ratio(top, bottom, fire, weights) for name, (top, bottom) in ratios.items()}
        rows["ap"] = self.ap_rows
        return {name: resamples.replicates(values) for name, values in rows.items()} | {
            "asd_m": mean_metres(self.surface.asd, fire[self.on_fire], resamples)
        }


def mean_metres(asd: FloatArray, fire: IntArray, resamples: Resamples) -> Replicates:
    """The mean of distances in pixels that are known, of images whose fires are given."""
    return resamples.replicates(bootstrap_ratio(asd * PIXEL_METRES, np.ones_like(asd), fire, resamples.weights))


class _ImageRows(NamedTuple):
    """Of some consecutive images."""

    first: int
    counts: IntArray
    """True positives, predicted, burnt and all pixels (4, images)."""
    surface: FloatArray
    """ASD and Hausdorff-95 (2, images), NaN without fire."""


class SegmentationTotals:
    """One method: `update` adds images, `merge` what another was told.

    `weights` say how often fires count in draws; without them draws are left to the totals that these are merged into.
    """

    def __init__(self, plan: SegmentationPlan, weights: IntArray | None = None) -> None:
        self._plan = plan
        self._prob = plan.ranks(1)
        self._levels = LevelCounts(2, weights)
        self._rows: list[_ImageRows] = []
        self._saturated = np.zeros(2, dtype=np.int64)
        self._half = False

    def update(self, first: int, burnt: BoolArray, prob: FloatArray, inside: BoolArray | None, fire: IntArray) -> None:
        """Add images (N, H, W), the first of which is image `first` of the year, and whose `fire` each is."""
        predicted = prob > self._plan.threshold if inside is None else (prob > self._plan.threshold) & inside
        masks = burnt & predicted, predicted, burnt, np.ones_like(burnt) if inside is None else inside
        counts = np.array([np.count_nonzero(mask, axis=(1, 2)) for mask in masks])
        surface = np.full((2, len(burnt)), np.nan)
        some = np.flatnonzero(counts[2])
        surface[:, some] = surface_losses(predicted[some], burnt[some], None if inside is None else inside[some])
        self._rows.append(_ImageRows(first, counts, surface))
        p, is_burnt = (pixels_inside(stack, inside) for stack in (prob, burnt))
        n_burnt = int(counts[2].sum())
        self._prob.update(p[is_burnt], np.ones(n_burnt, np.uint8), np.zeros(n_burnt, np.uint8))
        self._prob.update_rest(p[~is_burnt])
        if p.dtype == np.float16:
            self._half = True
            self._saturated += np.count_nonzero(p == 0), np.count_nonzero(p == 1)
        if self._plan.draws:
            image = np.repeat(np.arange(len(burnt)), counts[3])
            self._levels.update(fire, image, codes_of(p), is_burnt)

    def merge(self, other: "SegmentationTotals") -> None:
        """Add another's images; each image comes once."""
        self._prob.merge(other._prob)
        self._levels.merge(other._levels)
        self._rows += other._rows
        self._saturated += other._saturated
        self._half |= other._half

    def result(self) -> MethodSegmentation:
        """All that was measured."""
        rows = sorted(self._rows, key=lambda some: some.first)
        hits, predicted, burnt, pixels = np.concatenate([some.counts for some in rows], axis=1)
        surface = np.concatenate([some.surface for some in rows], axis=1)
        on_fire, n_pixels = burnt > 0, int(pixels.sum())
        missed = (predicted == 0) | ((predicted == pixels) & (burnt < pixels))
        by_level = [auprc(counts_by_level(levels[..., 1], levels[..., 0])) for levels in self._levels.rows()]
        zero, one = (int(n) / n_pixels for n in self._saturated)
        return MethodSegmentation(
            float(auprc(next(self._prob.regions()).pooled)),
            np.concatenate([np.empty(0), *by_level]),
            hits,
            predicted,
            burnt,
            n_pixels,
            SurfaceLosses(*surface[:, on_fire]),
            missed[on_fire],
            (zero, one) if self._half else None,
            RankBound(auprc=self._prob.bound().auprc),
        )


def mean_of(values: FloatArray) -> float:
    """Of those that are known; NaN where none is."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")

"""One year's predicted maps, read block by block: segmentation first, then the regions around fire."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.bootstrap import bootstrap_average_precision, bootstrap_ranking, bootstrap_ratio, draw_fires
from fcer.core.calibration import Binning, ReliabilityCurve, ece_loss, log_losses, reliability_curve
from fcer.core.near_fire import NearFire, list_near_fire
from fcer.core.per_image import ImageScores, image_scores
from fcer.core.rank_counts import RingScores, nested_counts
from fcer.core.ranking import auprc
from fcer.core.regions import PIXEL_METRES, pixels_inside
from fcer.core.segmentation import FIRE_THRESHOLD, Confusion
from fcer.core.surface import SurfaceLosses, surface_losses
from fcer.core.sweep import MethodPixels, SweepCurve, gather, sweep_curve
from fcer.evaluation.progress import Bar
from fcer.evaluation.selective import OwnErrors, RiskCoverage, own_errors_and_risk
from fcer.maps.predicted_maps import PredictedMaps

__all__ = [
    "BINNINGS",
    "Fires",
    "MethodRegions",
    "MethodSegmentation",
    "find_fires",
    "fires_of",
    "replicate_segmentation",
    "segment",
    "sweep_year",
]

BINNINGS: tuple[Binning, ...] = ("width", "mass")

_LEVELS = 2048
"""Levels of probability that AP is drawn anew at; its value itself is exact."""


@dataclass(frozen=True)
class Fires:
    """Which images of a year show fire, whose each image is, and how often each draw counts each fire."""

    on_fire: BoolArray
    fire: IntArray
    draws: IntArray


@dataclass(frozen=True)
class MethodSegmentation:
    """One method on one year. Counts are per image; surface losses and `missed` per fire image."""

    ap: float
    true_positives: IntArray
    predicted: IntArray
    burnt: IntArray
    n_pixels: int
    surface: SurfaceLosses
    missed: BoolArray
    ap_draws: FloatArray

    @property
    def confusion(self) -> Confusion:
        """Over the whole year."""
        hits, predicted, burnt = (int(a.sum()) for a in (self.true_positives, self.predicted, self.burnt))
        return Confusion(hits, predicted - hits, burnt - hits, self.n_pixels - predicted - burnt + hits)

    @property
    def mean_asd(self) -> float:
        """Pixels; NaN where no fire image has a predicted fire to measure from."""
        defined = self.surface.asd[~np.isnan(self.surface.asd)]
        return float(defined.mean()) if defined.size else float("nan")


@dataclass(frozen=True)
class MethodRegions:
    """One method on one year's regions: all radii, and more detail at the anchor."""

    curve: SweepCurve
    scores: ImageScores
    ece_mass: float
    reliability: dict[Binning, ReliabilityCurve]
    own_errors: OwnErrors
    risk_coverage: RiskCoverage
    replicates: dict[str, FloatArray]


def find_fires(maps: PredictedMaps, n_draws: int, seed: int, bar: Bar) -> Fires:
    """Fire images and draws of fires; an image without a fire_id is a fire of its own."""
    on_fire = []
    for images in maps.blocks():
        fire = maps.fire(images)
        on_fire.append(fire.any(axis=(1, 2)))
        bar.update(len(fire))
    return fires_of(maps, np.concatenate(on_fire), n_draws, seed)


def fires_of(maps: PredictedMaps, on_fire: BoolArray, n_draws: int, seed: int) -> Fires:
    """Number the fires and draw them, where it is known which images show fire."""
    labels = np.arange(maps.shape[0]) if maps.fire_id is None else maps.fire_id
    names, fire_of_image = np.unique(labels, return_inverse=True)
    rng = np.random.default_rng((seed, maps.year))
    return Fires(on_fire, fire_of_image, draw_fires(names.size, n_draws, rng))


def segment(maps: PredictedMaps, method: str, fires: Fires, bar: Bar) -> MethodSegmentation:
    """How well a method finds fire, over all images of the year, those without fire included."""
    dtype = np.promote_types(maps.arrays[f"{method}_prob"].dtype.newbyteorder("="), np.float32)
    scores = np.empty(maps.n_pixels, dtype=dtype)
    levels = _LevelCounts(fires)
    on_fire, counts, asd, hausdorff95, missed = [], [], [], [], []
    n_scores = 0
    for images in maps.blocks():
        fire, prob, inside = maps.fire(images), maps.prob(method, images), maps.inside(images)
        predicted = prob > FIRE_THRESHOLD if inside is None else (prob > FIRE_THRESHOLD) & inside
        block = pixels_inside(prob, inside)
        scores[n_scores : n_scores + block.size] = block
        n_scores += block.size
        levels.add(images, fire, prob, inside)
        on_fire.append(prob[fire].astype(dtype))
        counts.append([np.count_nonzero(m, axis=(1, 2)) for m in (fire & predicted, predicted, fire)])
        has_fire, has_predicted = counts[-1][2] > 0, counts[-1][1] > 0
        losses = surface_losses(*_only(has_fire, predicted, fire, inside))
        asd.append(losses.asd)
        hausdorff95.append(losses.hausdorff95)
        missed.append(~has_predicted[has_fire])
        bar.update(len(fire))
    scores.sort()  # in place: for thousands of images this is the largest array there is
    ranks = next(nested_counts([RingScores(scores, np.sort(np.concatenate(on_fire)))]))
    hits, predicted_pixels, burnt_pixels = np.concatenate(counts, axis=1)
    return MethodSegmentation(
        float(auprc(ranks)),
        hits,
        predicted_pixels,
        burnt_pixels,
        scores.size,
        SurfaceLosses(np.concatenate(asd), np.concatenate(hausdorff95)),
        np.concatenate(missed),
        levels.ap_draws(),
    )


class _LevelCounts:
    """Each fire's burnt and all pixels by level of probability: what AP can be drawn anew from."""

    def __init__(self, fires: Fires) -> None:
        self.fires = fires
        self.wanted = len(fires.draws) > 0
        n_fires = fires.draws.shape[1] if self.wanted else 0
        self.burnt, self.pixels = (np.zeros((n_fires, _LEVELS), dtype=np.int64) for _ in range(2))

    def add(self, images: slice, fire: BoolArray, prob: FloatArray, inside: BoolArray | None) -> None:
        """Count a block of images."""
        if not self.wanted:
            return
        whose, place = np.unique(self.fires.fire[images], return_inverse=True)
        level = np.minimum(prob * _LEVELS, _LEVELS - 1).astype(np.intp)
        bins = level + (place * _LEVELS)[:, None, None]
        for counts, some in ((self.burnt, bins[fire]), (self.pixels, pixels_inside(bins, inside))):
            counts[whose] += np.bincount(some, minlength=whose.size * _LEVELS).reshape(whose.size, _LEVELS)

    def ap_draws(self) -> FloatArray:
        """AP once for each draw of fires."""
        return bootstrap_average_precision(self.burnt, self.pixels, self.fires.draws) if self.wanted else np.empty(0)


def sweep_year(
    maps: PredictedMaps, reference: str, fires: Fires, radii: Sequence[float], anchors: Sequence[float], bar: Bar
) -> dict[str, MethodRegions]:
    """Every method in the regions of the finite, ascending `radii` and the full image.

    Per-image scores are taken at all of `anchors`, which are among the radii; the rest at the first of them.
    """
    near = _list_near_fire(maps, reference, fires, radii, bar)
    return {method: _measure(maps, method, fires, near, anchors, bar) for method in maps.methods}


def _list_near_fire(maps: PredictedMaps, reference: str, fires: Fires, radii: Sequence[float], bar: Bar) -> NearFire:
    pieces = []
    for images in maps.blocks():
        some = fires.on_fire[images]
        if some.any():
            fire, prob, inside = _only(some, maps.fire(images), maps.prob(reference, images), maps.inside(images))
            pieces.append(list_near_fire(fire, prob, radii, inside))
        bar.update(len(some))
    return NearFire.join(pieces)


def _measure(
    maps: PredictedMaps, method: str, fires: Fires, near: NearFire, anchors: Sequence[float], bar: Bar
) -> MethodRegions:
    dtype = maps.arrays[f"{method}_unc"].dtype.newbyteorder("=")
    pixels = gather(near, _fire_blocks(maps, method, fires, bar), dtype)
    curve = sweep_curve(near, pixels, (*near.radii, np.inf))
    at_anchor = near.ring <= near.radii.index(anchors[0])
    fire, prob = near.fire[at_anchor], pixels.prob[at_anchor]
    return MethodRegions(
        curve,
        image_scores(near, pixels.unc, anchors),
        ece_loss(fire, prob, binning="mass"),
        {binning: reliability_curve(fire, prob, binning=binning) for binning in BINNINGS},
        *own_errors_and_risk(fire, prob, pixels.unc[at_anchor], near.error[at_anchor]),
        _replicate(near, pixels, fires, at_anchor) if len(fires.draws) else {},
    )


def _fire_blocks(
    maps: PredictedMaps, method: str, fires: Fires, bar: Bar
) -> Iterator[tuple[BoolArray, FloatArray, FloatArray]]:
    for images in maps.blocks():
        some = fires.on_fire[images]
        if some.any():
            stacks = maps.fire(images), maps.prob(method, images), maps.unc(method, images), maps.inside(images)
            fire, prob, unc, inside = _only(some, *stacks)
            yield pixels_inside(fire, inside), pixels_inside(prob, inside), pixels_inside(unc, inside)
        bar.update(len(some))


def _only(some: BoolArray, *stacks: Any) -> tuple[Any, ...]:
    """The chosen images of each stack that there is, without a copy where that is all of them."""
    return stacks if some.all() else tuple(None if stack is None else stack[some] for stack in stacks)


def _replicate(near: NearFire, method: MethodPixels, fires: Fires, at_anchor: BoolArray) -> dict[str, FloatArray]:
    """Each metric at the anchor, once for each draw of fires."""
    image = near.image[at_anchor]
    fire_of_image = fires.fire[fires.on_fire]
    auroc, auprc = bootstrap_ranking(method.unc[at_anchor], near.error[at_anchor], fire_of_image[image], fires.draws)
    fire, prob = near.fire[at_anchor], method.prob[at_anchor].astype(np.float64)
    n_pixels = np.bincount(image, minlength=near.n_images)
    replicates = {"auroc": auroc, "auprc": auprc}
    for metric, losses in (("brier", (prob - fire) ** 2), ("nll", log_losses(fire, prob))):
        sums = np.bincount(image, weights=losses, minlength=near.n_images)
        replicates[metric] = bootstrap_ratio(sums, n_pixels, fire_of_image, fires.draws)
    return replicates


def replicate_segmentation(method: MethodSegmentation, fires: Fires) -> dict[str, FloatArray]:
    """Each segmentation metric, once for each draw of fires."""
    hits, predicted, burnt = method.true_positives, method.predicted, method.burnt
    ratios = {
        "precision": (hits, predicted),
        "recall": (hits, burnt),
        "iou": (hits, predicted + burnt - hits),
        "f1": (2 * hits, predicted + burnt),
    }
    replicates = {name: bootstrap_ratio(top, bottom, fires.fire, fires.draws) for name, (top, bottom) in ratios.items()}
    asd = method.surface.asd * PIXEL_METRES
    replicates["ap"] = method.ap_draws
    replicates["asd_m"] = bootstrap_ratio(asd, np.ones_like(asd), fires.fire[fires.on_fire], fires.draws)
    return replicates

"""What the pieces of all shards of a year come to: every method in the regions around fire."""

from collections.abc import Sequence

import numpy as np

from fcer.core.arrays import FloatArray, IntArray
from fcer.core.bootstrap import bootstrap_ratio
from fcer.core.calibration import ECE_BINS, ReliabilityCurve
from fcer.core.codes import N_CODES
from fcer.core.exact_sums import add_whole, sum_of
from fcer.core.histogram import RankBound, histogram_counts, mass_reliability, rank_bound
from fcer.core.per_image import ImageScores
from fcer.core.rank_counts import RankCounts
from fcer.core.ranking import RankingScores, auprc, auroc, ranking_scores
from fcer.core.regions import PIXEL_METRES
from fcer.core.sweep import SweepCurve
from fcer.evaluation.level_counts import LevelDraws
from fcer.evaluation.region_pieces import LOSSES, RegionPiece
from fcer.evaluation.selective import own_errors, risk_coverage
from fcer.evaluation.shards import Shard
from fcer.evaluation.year import Fires, MethodRegions

__all__ = ["RegionTotal"]


class RegionTotal:
    """One method on one year; pieces may come in any order."""

    def __init__(self, fires: Fires, radii: Sequence[float], anchors: Sequence[float]) -> None:
        self._fires = fires
        self._row = np.append(0, np.cumsum(fires.on_fire))
        self._radii, self._anchor_ring = (*radii, np.inf), list(radii).index(anchors[0])
        n_images, n_rings = int(self._row[-1]), len(radii)
        self._rings = np.zeros((n_rings, 2, N_CODES), np.int64)
        self._full, self._anchor = np.zeros((2, N_CODES), np.int64), np.zeros((3, N_CODES), np.int64)
        self._rounded = np.zeros(N_CODES, dtype=bool)
        self._losses = np.zeros((2, len(LOSSES), n_rings + 1), np.int64)
        self._calibration = np.zeros((2, n_rings, ECE_BINS), np.int64)
        self._bin_prob = np.zeros((2, n_rings + 1, ECE_BINS), np.int64)
        values, counts = np.full((2, n_images, len(anchors)), np.nan), np.zeros((2, n_images, len(anchors)), np.int64)
        self._scores = ImageScores(*values, *counts)
        self._image_losses = np.zeros((len(LOSSES), n_images))
        self._draws = LevelDraws(fires.draws)

    def add(self, shard: Shard, piece: RegionPiece) -> None:
        """Add a shard's piece; each shard comes once."""
        for packed, histogram in (
            (piece.rings, self._rings),
            (piece.full, self._full),
            (piece.anchor, self._anchor),
        ):
            packed.add_to(histogram)
        self._rounded |= piece.rounded
        self._calibration += piece.calibration
        add_whole(self._losses, piece.losses)
        add_whole(self._bin_prob, piece.bin_prob)
        rows = slice(self._row[shard.place.start], self._row[shard.place.stop])
        for column, part in zip(self._scores, piece.scores, strict=True):
            column[rows] = part
        self._image_losses[:, rows] = piece.image_losses
        if piece.levels is not None:
            self._draws.add(piece.levels)

    def result(self) -> tuple[MethodRegions, RankBound]:
        """All that was measured, and how far rankings may be from those of the exact uncertainties."""
        regions = self._regions()
        own = self._anchor[0], regions[self._anchor_ring][1]
        mass = mass_reliability(self._anchor[1], self._anchor[2])
        bound = RankBound()
        for region in (*regions, own):
            bound = bound.or_wider(rank_bound(*region, self._rounded))
        counts = [histogram_counts(*region) for region in regions]
        measured = MethodRegions(
            self._curve(counts),
            self._scores,
            _calibration_error(mass),
            {"width": self._width_reliability(), "mass": mass},
            own_errors(histogram_counts(*own)),
            risk_coverage(counts[self._anchor_ring]),
            self._replicates() if len(self._fires.draws) else {},
        )
        return measured, bound

    def _regions(self) -> list[tuple[IntArray, IntArray]]:
        """Wrong and all pixels of each region by code: rings add up to regions."""
        wrong, pixels = self._rings[:, 1].cumsum(axis=0), self._rings.sum(axis=1).cumsum(axis=0)
        return [*zip(wrong, pixels, strict=True), (self._full[0], self._full[1])]

    def _curve(self, regions: Sequence[RankCounts]) -> SweepCurve:
        ranks = [ranking_scores(counts) for counts in regions]
        n_errors = np.array([int(counts.n_positives) for counts in regions])
        n_pixels = n_errors + np.array([int(counts.n_negatives) for counts in regions])
        edges = np.array(self._radii)
        prob, fire = _of_regions(sum_of(self._bin_prob)), self._calibration[1].cumsum(axis=0)
        fire = np.concatenate([fire, fire[-1:]])  # what burnt is near fire, and all there is in the full image
        with np.errstate(invalid="ignore"):  # NaN in an empty region
            losses = {
                name: _of_regions(sums) / n_pixels for name, sums in zip(LOSSES, sum_of(self._losses), strict=True)
            }
            ece, prevalence = np.abs(prob - fire).sum(axis=1) / n_pixels, n_errors / n_pixels
        return SweepCurve(
            radius_px=edges,
            radius_m=edges * PIXEL_METRES,
            **{name: np.array([getattr(scores, name) for scores in ranks]) for name in RankingScores._fields},
            **losses,
            n_pixels=n_pixels,
            n_errors=n_errors,
            prevalence=prevalence,
            ece=ece,
        )

    def _width_reliability(self) -> ReliabilityCurve:
        rings = slice(self._anchor_ring + 1)
        count, fire = self._calibration[:, rings].sum(axis=1)
        prob = sum_of(self._bin_prob[:, rings].sum(axis=1))
        edges, some = np.linspace(0, 1, ECE_BINS + 1), np.flatnonzero(count)
        return ReliabilityCurve(
            edges[some], edges[some + 1], count[some], prob[some] / count[some], fire[some] / count[some]
        )

    def _replicates(self) -> dict[str, FloatArray]:
        """Each metric at the anchor, once for each draw of fires."""
        ranks = [(auroc(counts), auprc(counts)) for counts in self._draws.counts()]
        replicates = dict(zip(("auroc", "auprc"), np.concatenate(ranks, axis=1), strict=True))
        fire, n_pixels = self._fires.fire[self._fires.on_fire], self._scores.n_pixels[:, 0]
        for name, sums in zip(LOSSES, self._image_losses, strict=True):
            replicates[name] = bootstrap_ratio(sums, n_pixels, fire, self._fires.draws)
        return replicates


def _of_regions(rows: FloatArray) -> FloatArray:
    """Rings and the full image, as regions and the full image."""
    return np.concatenate([rows[:-1].cumsum(axis=0), rows[-1:]])


def _calibration_error(curve: ReliabilityCurve) -> float:
    return float(np.average(np.abs(curve.mean_prob - curve.fire_rate), weights=curve.n_pixels))

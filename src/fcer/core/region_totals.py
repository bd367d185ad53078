"""One method in the regions around fire, added up: image by image, and shard by shard, in any order.

Nothing here knows how pixels are ranked: that is left to one of the rankers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.bootstrap import Replicates, Resamples, bootstrap_ratio
from fcer.core.calibration import Binning, ReliabilityCurve, base_losses, mass_reliability, skill_of
from fcer.core.codes import codes_of
from fcer.core.corp import BrierParts, CorpCurve, brier_parts, corp_curve
from fcer.core.levels import LevelCounts
from fcer.core.loss_totals import LOSSES, LossTotals
from fcer.core.near_fire import NearFire
from fcer.core.per_image import ImageScores, image_scores
from fcer.core.rank_bounds import RankBound
from fcer.core.rank_counts import N_CELLS, ClassCounts, counts_by_level
from fcer.core.rankers import Ranks
from fcer.core.ranking import RankingScores, auprc, auroc, auroc_within, ranking_scores
from fcer.core.regions import PIXEL_METRES
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.selective import OwnErrors, RiskCoverage, own_errors, risk_coverage
from fcer.core.threshold_sweep import ThresholdCounts, ThresholdCurve, thresholds_around

__all__ = ["MethodRegions", "OwnProbability", "RegionPlan", "RegionTotals", "SweepCurve"]


class SweepCurve(NamedTuple):
    """One value per region, in the order of the radii."""

    radius_px: FloatArray
    radius_m: FloatArray
    auroc: FloatArray
    auprc: FloatArray
    brier: FloatArray
    nll: FloatArray
    n_pixels: IntArray
    n_errors: IntArray
    prevalence: FloatArray
    auroc_within: FloatArray
    auroc_alarms: FloatArray
    auroc_missed: FloatArray
    false_alarm_share: FloatArray
    brier_skill: FloatArray
    nll_skill: FloatArray
    fpr95: FloatArray
    aurc: FloatArray
    e_aurc: FloatArray
    augrc: FloatArray
    ece: FloatArray
    base_rate: FloatArray
    """Share of pixels that burnt; unknown where a control borrows its probability."""


class RegionPlan(NamedTuple):
    """Which regions: of finite, ascending radii, and the full image.

    Images are scored one by one at all of `anchors`, which are among the radii; the first is the anchor itself.
    """

    radii: tuple[float, ...]
    anchors: tuple[float, ...]
    ranks: type[Ranks]
    threshold: float = FIRE_THRESHOLD
    draws: bool = False
    """Whether draws of fires are wanted."""


@dataclass(frozen=True)
class OwnProbability:
    """What a method's own probability comes to at the anchor; a control, which borrows one, has none of this."""

    errors: OwnErrors
    reliability: dict[Binning, ReliabilityCurve]
    corp: CorpCurve
    brier_parts: BrierParts


@dataclass(frozen=True)
class MethodRegions:
    """One method on one year's regions: all radii, and more detail at the anchor."""

    curve: SweepCurve
    scores: ImageScores
    risk_coverage: RiskCoverage
    n_predicted: int
    """Pixels at the anchor where the reference predicts fire."""
    own: OwnProbability | None
    replicates: dict[str, Replicates]
    bound: RankBound
    thresholds: ThresholdCurve
    """At the anchor, by the threshold that makes the reference's errors."""


class _ImageRows(NamedTuple):
    """Of some consecutive fire images, each at the anchor."""

    first: int
    fire: IntArray
    scores: ImageScores
    burnt: IntArray
    losses: FloatArray
    """Brier score and likelihood (losses, images)."""


class RegionTotals:
    """One method: `update` adds images, `merge` what another was told.

    `weights` say how often fires count in draws; without them draws are left to the totals that these are merged into.
    """

    def __init__(self, plan: RegionPlan, *, own_prob: bool, weights: IntArray | None = None) -> None:
        self._plan = plan
        n_rings = len(plan.radii)
        self._anchor_ring = plan.radii.index(plan.anchors[0])
        self._unc = plan.ranks(n_rings + 1)
        self._own_errors, self._prob = plan.ranks(1), plan.ranks(1)
        self._losses = LossTotals(n_rings) if own_prob else None
        self._levels = LevelCounts(N_CELLS, weights)
        self._thresholds = ThresholdCounts(thresholds_around(plan.threshold))
        self._rows: list[_ImageRows] = []

    def update(
        self, first: int, near: NearFire, burnt: BoolArray, prob: FloatArray | None, unc: FloatArray, fire: IntArray
    ) -> None:
        """Add fire images, the first of which is image `first` of the year, and whose `fire` each is.

        Pixels are flat, without padding; `prob` is there unless the method is a control.
        """
        at_anchor, near_unc = near.within(self._plan.anchors[0]), unc[near.position]
        self._update_ranks(near, near_unc, unc)
        image = near.image[at_anchor]
        burnt_at_anchor = near.burnt[at_anchor]
        losses = np.zeros((len(LOSSES), near.n_images))
        if prob is not None and self._losses is not None:
            losses = self._losses.update(near, burnt, prob)[:, :, : self._anchor_ring + 1].sum(axis=2)
            self._update_own(prob[near.position[at_anchor]], near_unc[at_anchor], burnt_at_anchor)
        self._thresholds.update(near_unc[at_anchor], burnt_at_anchor, near.above[at_anchor])
        if self._plan.draws:
            self._levels.update(fire, image, codes_of(near_unc[at_anchor]), near.cell[at_anchor])
        n_burnt = np.bincount(image[burnt_at_anchor], minlength=near.n_images)
        scores = image_scores(near, near_unc, self._plan.anchors)
        self._rows.append(_ImageRows(first, fire, scores, n_burnt, losses))

    def _update_ranks(self, near: NearFire, near_unc: FloatArray, unc: FloatArray) -> None:
        self._unc.update(near_unc, near.cell, near.ring)
        n_alarms, last = near.far_alarm.size, len(self._plan.radii)
        self._unc.update(unc[near.far_alarm], np.full(n_alarms, 3, np.uint8), np.full(n_alarms, last, near.ring.dtype))
        is_rest = np.ones(unc.size, dtype=bool)
        is_rest[near.position] = is_rest[near.far_alarm] = False
        self._unc.update_rest(unc[is_rest])

    def _update_own(self, prob: FloatArray, unc: FloatArray, burnt: BoolArray) -> None:
        wrong = (prob > self._plan.threshold) != burnt
        for ranks, scores, positive in ((self._own_errors, unc, wrong), (self._prob, prob, burnt)):
            n = np.count_nonzero(positive)
            ranks.update(scores[positive], np.ones(n, np.uint8), np.zeros(n, np.uint8))
            ranks.update_rest(scores[~positive])

    def merge(self, other: "RegionTotals") -> None:
        """Add another's images; each image comes once."""
        for ours, theirs in ((self._unc, other._unc), (self._own_errors, other._own_errors), (self._prob, other._prob)):
            ours.merge(theirs)
        if self._losses is not None and other._losses is not None:
            self._losses.merge(other._losses)
        self._levels.merge(other._levels)
        self._thresholds.merge(other._thresholds)
        self._rows += other._rows

    def result(self, resamples: Resamples | None = None, seed: int = 0) -> MethodRegions:
        """All that was measured."""
        ranks, sizes = [], []
        for k, counts in enumerate(self._unc.regions()):
            pooled = counts.pooled
            ranks.append(ranking_scores(counts))
            sizes.append((int(pooled.n_positives), int(pooled.n_negatives)))
            if k == self._anchor_ring:
                risk, alarms = risk_coverage(pooled), counts.alarms
        curve = self._curve(ranks, np.array(sizes))
        rows = sorted(self._rows, key=lambda some: some.first)
        scores = ImageScores(*(np.concatenate(column) for column in zip(*(some.scores for some in rows), strict=True)))
        return MethodRegions(
            curve,
            scores,
            risk,
            int(alarms.n_positives + alarms.n_negatives),
            self._own(float(curve.brier[self._anchor_ring]), np.random.default_rng(seed) if resamples else None),
            self._replicates(rows, scores.n_pixels[:, 0], resamples) if resamples else {},
            self._unc.bound().or_wider(self._own_errors.bound()),
            self._thresholds.curve(),
        )

    def _curve(self, ranks: list[RankingScores], sizes: IntArray) -> SweepCurve:
        n_errors, n_pixels = sizes[:, 0], sizes.sum(axis=1)
        edges = np.array([*self._plan.radii, np.inf])
        losses = {} if self._losses is None else self._losses.columns(n_pixels)
        with np.errstate(invalid="ignore"):  # NaN in an empty region
            prevalence = n_errors / n_pixels
        unknown = dict.fromkeys(
            ("brier", "nll", "brier_skill", "nll_skill", "ece", "base_rate"), np.full(edges.size, np.nan)
        )
        return SweepCurve(
            radius_px=edges,
            radius_m=edges * PIXEL_METRES,
            n_pixels=n_pixels,
            n_errors=n_errors,
            prevalence=prevalence,
            **{name: np.array([getattr(scores, name) for scores in ranks]) for name in RankingScores._fields},
            **{**unknown, **losses},
        )

    def _own(self, brier: float, rng: np.random.Generator | None) -> OwnProbability | None:
        if self._losses is None:
            return None
        counts = self._prob.value_counts()
        curves: dict[Binning, ReliabilityCurve] = {
            "width": self._losses.reliability(self._anchor_ring),
            "mass": mass_reliability(*counts),
        }
        own = own_errors(next(self._own_errors.regions()).pooled)
        return OwnProbability(own, curves, corp_curve(counts, rng), brier_parts(counts, brier))

    def _replicates(self, rows: list[_ImageRows], n_pixels: IntArray, resamples: Resamples) -> dict[str, Replicates]:
        """Each metric at the anchor, once for each draw of fires."""
        drawn: dict[str, FloatArray] = {}
        ranked = [_drawn_ranks(levels) for levels in self._levels.rows()]
        drawn |= zip(("auroc", "auprc", "auroc_within"), np.concatenate(ranked, axis=1), strict=True)
        if self._losses is not None:
            fire = np.concatenate([some.fire for some in rows])
            burnt = np.concatenate([some.burnt for some in rows])
            ones = np.ones(fire.size)
            pixels_drawn = bootstrap_ratio(n_pixels, ones, fire, resamples.weights)
            bases = base_losses(bootstrap_ratio(burnt, ones, fire, resamples.weights), pixels_drawn)
            for k, name in enumerate(LOSSES):
                losses = np.concatenate([some.losses[k] for some in rows])
                drawn[name] = bootstrap_ratio(losses, n_pixels, fire, resamples.weights)
                drawn[f"{name}_skill"] = skill_of(drawn[name], bases[k])
        return {name: resamples.replicates(values) for name, values in drawn.items()}


def _drawn_ranks(levels: FloatArray) -> FloatArray:
    """AUROC, AUPRC and AUROC within the class (metrics, rows) from pixels by level and kind (rows, levels, kinds)."""
    missed, alarms = (counts_by_level(levels[..., wrong], levels[..., wrong - 1]) for wrong in (1, 3))
    counts = ClassCounts(missed, alarms)
    pooled = counts.pooled
    return np.array([auroc(pooled), auprc(pooled), auroc_within(counts)])

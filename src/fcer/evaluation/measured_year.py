"""All that was measured on one year's maps, and how far draws of its fires spread around it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.bootstrap import Replicates
from fcer.core.region_totals import MethodRegions
from fcer.core.regions import PIXEL_METRES
from fcer.core.segmentation import f1_score, iou_score, precision_score, recall_score
from fcer.evaluation.comparison import Estimate
from fcer.evaluation.engines import Fires
from fcer.evaluation.segmentation_totals import MethodSegmentation, mean_metres, mean_of
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["MeasuredYear"]


@dataclass(frozen=True)
class MeasuredYear:
    """By method; controls have regions, and no segmentation."""

    maps: PredictedMaps
    fires: Fires
    segmentation: Mapping[str, MethodSegmentation]
    regions: Mapping[str, MethodRegions]
    anchors: Mapping[str, float]
    """In pixels, by name: the anchor itself, then those that show how much hangs on it."""

    @property
    def anchor_px(self) -> float:
        """The anchor itself."""
        return next(iter(self.anchors.values()))

    @property
    def on_fire(self) -> BoolArray:
        """Which images show fire."""
        return next(iter(self.segmentation.values())).on_fire

    @property
    def common(self) -> BoolArray:
        """The fire images on which every method has a boundary."""
        return np.asarray(~np.isnan([found.surface.asd for found in self.segmentation.values()]).any(axis=0))

    def common_asd(self, method: str) -> FloatArray:
        """In pixels, NaN where another method has no boundary."""
        return np.where(self.common, self.segmentation[method].surface.asd, np.nan)

    def segmentation_row(self, method: str) -> dict[str, float]:
        """The method's row of the table, but for its names; NaN for a control."""
        found = self.segmentation.get(method)
        if found is None:
            unknown = dict.fromkeys(_SEGMENTATION, np.nan)
            return {**unknown, "fire_images": int(self.on_fire.sum())}
        counts, asd, common = found.confusion, found.surface.asd, self.common_asd(method)
        values = (
            *(found.ap, precision_score(counts), recall_score(counts), found.mean_asd * PIXEL_METRES),
            *(int(np.count_nonzero(~np.isnan(asd))), mean_of(common) * PIXEL_METRES),
            *(asd.size, int(found.missed.sum()), iou_score(counts), f1_score(counts)),
            found.mean_hausdorff95 * PIXEL_METRES,
        )
        return dict(zip(_SEGMENTATION, values, strict=True))

    def estimates(self, method: str, other: str = "") -> dict[str, Estimate]:
        """What was measured of a method at the anchor and as segmentation, or of its difference from another's.

        The difference of ASD is over the images where both have a boundary.
        """
        if not other:
            return self._estimates(method)
        ours, theirs = self._estimates(method), self._estimates(other)
        both = {name: ours[name].minus(theirs[name]) for name in ours if name in theirs}
        if "asd_m" in both:
            gap = self.segmentation[method].surface.asd - self.segmentation[other].surface.asd
            both["asd_m"] = Estimate(mean_of(gap) * PIXEL_METRES, self._metres(gap))
        return both

    def _estimates(self, method: str) -> dict[str, Estimate]:
        regions, values = self.regions[method], self.segmentation_row(method)
        row = int(np.flatnonzero(regions.curve.radius_px == self.anchor_px)[0])
        values |= {name: float(getattr(regions.curve, name)[row]) for name in regions.replicates}
        drawn: dict[str, Replicates] = {}
        if method in self.segmentation:
            drawn |= self.segmentation[method].replicates(self.fires.of_image, self.fires.resamples)
            drawn["asd_common_m"] = self._metres(self.common_asd(method))
        drawn |= regions.replicates
        return {name: Estimate(values[name], replicates) for name, replicates in drawn.items()}

    def _metres(self, asd: FloatArray) -> Replicates:
        return mean_metres(asd, self.fires.of_image[self.on_fire], self.fires.resamples)


_SEGMENTATION = (
    *("ap", "precision", "recall", "asd_m", "asd_images", "asd_common_m", "fire_images", "missed"),
    *("iou", "f1", "hausdorff95_m"),
)

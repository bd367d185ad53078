"""Controls: maps that know nothing, or nothing but the backbone's probability, and that a method must beat."""

from typing import ClassVar

import numpy as np
from scipy import ndimage

from fcer.core.arrays import BoolArray
from fcer.core.surface import boundary
from fcer.models.persistence_baseline import burning_today
from fcer.uncertainty.predictors import FloatMaps, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["BoundaryDistance", "FireProbability", "Noise", "TodayDistance"]


class _Control(Method):
    """Borrows the probability of the student's backbone."""

    control: ClassVar[bool] = True


@method("random")
class Noise(_Control):
    """Knows nothing."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Drawn by the seed and the first sample's number alone."""
        rng = np.random.default_rng((seen.predictors.seed, seen.start))
        return rng.random(seen.prob_BHW.shape, dtype=np.float32)


@method("boundary_distance")
class BoundaryDistance(_Control):
    """Knows where the predicted fire ends."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Falls with the distance to the predicted fire's edge; zero everywhere where no fire is predicted."""
        return _nearness(boundary(seen.prob_BHW > seen.predictors.threshold))


@method("today_distance")
class TodayDistance(_Control):
    """Knows where fire burns on the last day seen, which heads may read too."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Falls with the distance to today's fire; zero everywhere where nothing burns."""
        return _nearness(np.stack([burning_today(days, seen.samples) for days, _ in seen.read]))


@method("probability")
class FireProbability(_Control):
    """Knows the class: where most errors are false alarms, predicted fire alone finds them."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """The fire probability itself."""
        return seen.prob_BHW


def _nearness(marked_BHW: BoolArray) -> FloatMaps:
    """1 on marked pixels, falling with the distance to them; zero in maps without any."""
    out = np.zeros(marked_BHW.shape, np.float32)
    for marked, nearness in zip(marked_BHW, out, strict=True):
        if marked.any():
            nearness[:] = 1 / (1 + ndimage.distance_transform_edt(~marked))
    return out

"""Controls: maps that know nothing, or nothing but the backbone's probability, and that a method must beat."""

from typing import ClassVar

import numpy as np
from scipy import ndimage

from fcer.core.surface import boundary
from fcer.uncertainty.predictors import FloatMaps, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["BoundaryDistance", "FireProbability", "Noise"]


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
        edges = boundary(seen.prob_BHW > seen.predictors.threshold)
        out = np.zeros(edges.shape, np.float32)
        for edge, nearness in zip(edges, out, strict=True):
            if edge.any():
                nearness[:] = 1 / (1 + ndimage.distance_transform_edt(~edge))
        return out


@method("probability")
class FireProbability(_Control):
    """Knows the class: where most errors are false alarms, predicted fire alone finds them."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """The fire probability itself."""
        return seen.prob_BHW

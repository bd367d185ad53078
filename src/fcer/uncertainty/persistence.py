"""Persistence, the forecaster's oldest baseline: tomorrow burns what burns today, and nothing is said of doubt."""

from typing import ClassVar

import numpy as np

from fcer.models.persistence_baseline import burning_today
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["Persistence"]


@method("persistence")
class Persistence(Method):
    """There for average precision and skill; its uncertainty is the same everywhere and ranks nothing."""

    ranks: ClassVar[bool] = False

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """1 where fire burns on the last day seen."""
        return np.stack([burning_today(days, seen.samples) for days, _ in seen.read]).astype(np.float32)

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """None."""
        return np.zeros((len(seen.read), *seen.read[0][1].shape), np.float32)

    def passes(self, predictors: Predictors) -> int:  # noqa: ARG002
        """It takes no model."""
        return 0

    def parameters(self, predictors: Predictors) -> int:  # noqa: ARG002
        """It has learnt nothing."""
        return 0

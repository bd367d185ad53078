"""Methods that look at several maps of one fire: their mean is the probability, their spread the uncertainty."""

from abc import abstractmethod

import numpy as np

from fcer.core.disagreement import normalized_std
from fcer.uncertainty.predictors import FloatMaps, SeenBatch
from fcer.uncertainty.registry import Method

__all__ = ["SeveralMaps"]


class SeveralMaps(Method):
    """Mean and normalised standard deviation over passes, views, networks or members."""

    @abstractmethod
    def maps(self, seen: SeenBatch) -> FloatMaps:
        """Probabilities (K, B, H, W)."""
        ...

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """Their mean."""
        return np.asarray(self._once(seen).mean(0))

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Their normalised standard deviation."""
        return normalized_std(self._once(seen))

    def _once(self, seen: SeenBatch) -> FloatMaps:
        return seen.once(f"{type(self).__module__}.{type(self).__qualname__}", lambda: self.maps(seen))

"""Entropy of a single backbone's probability (Shannon 1948): the uncertainty that costs nothing."""

from fcer.core.disagreement import entropy
from fcer.uncertainty.predictors import FloatMaps, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["Entropy"]


@method("entropy")
class Entropy(Method):
    """Of the student's backbone."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """In bits, 1 at a probability of one half."""
        return entropy(seen.prob_BHW)

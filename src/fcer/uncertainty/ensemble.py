"""The deep ensemble (Lakshminarayanan et al. 2017): mean of the members, and three measures of their disagreement."""

from abc import abstractmethod

import numpy as np

from fcer.core.disagreement import mutual_information, normalized_std, predictive_entropy
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["Ensemble", "EnsembleEntropy", "EnsembleInformation"]


class _OfMembers(Method):
    """The members' mean; one pass through each."""

    def prob(self, seen: SeenBatch) -> FloatMaps:
        """Mean over members."""
        return np.asarray(seen.members_KBHW.mean(0))

    @abstractmethod
    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Of the members' probabilities."""

    def passes(self, predictors: Predictors) -> int:
        """One for each member."""
        return len(predictors.members)

    def parameters(self, predictors: Predictors) -> int:
        """Those of all members."""
        return sum(weight.numel() for member in predictors.members for weight in member.backbone.parameters())


@method("ensemble")
class Ensemble(_OfMembers):
    """The paper's teacher."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Normalised standard deviation over members."""
        return normalized_std(seen.members_KBHW)


@method("ensemble_entropy")
class EnsembleEntropy(_OfMembers):
    """Total uncertainty."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Entropy of the members' mean."""
        return predictive_entropy(seen.members_KBHW)


@method("ensemble_mi")
class EnsembleInformation(_OfMembers):
    """Epistemic uncertainty alone."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """Mutual information of prediction and member."""
        return mutual_information(seen.members_KBHW)

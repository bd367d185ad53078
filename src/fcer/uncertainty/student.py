"""The distilled student (DUDES, Landgraf et al. 2024): a head on the backbone's features, in one pass with it."""

import numpy as np
import torch

from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["DistilledStudent"]


@method("student")
class DistilledStudent(Method):
    """Probability of the backbone, uncertainty of the head."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """At the cost of the head alone."""
        assert seen.predictors.student is not None
        with torch.inference_mode():
            logits_BHW, features_BFHW = seen.alone
            return np.asarray(seen.predictors.student.student.head(features_BFHW, logits_BHW).sigmoid())

    def check(self, predictors: Predictors) -> None:
        """There must be a student."""
        if predictors.student is None:
            raise ValueError("there is no student to predict with")

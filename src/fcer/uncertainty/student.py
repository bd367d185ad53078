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
            head = seen.predictors.student.student.head
            return np.asarray(head(features_BFHW, logits_BHW, seen.today_BHW if head.spec.fire else None).sigmoid())

    def parameters(self, predictors: Predictors) -> int:
        """Those of its backbone and its head."""
        assert predictors.student is not None
        return sum(weight.numel() for weight in predictors.student.student.parameters())

    def check(self, predictors: Predictors) -> None:
        """There must be a student."""
        if predictors.student is None:
            raise ValueError("there is no student to predict with")

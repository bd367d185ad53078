"""Entropy of a backbone's probability (Shannon 1948), which costs nothing, and of that probability once calibrated."""

from fcer.core.disagreement import entropy
from fcer.core.recalibration import NONE, Recalibration
from fcer.errors import ConfigError, warn
from fcer.models.calibration_files import load_calibration
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import Method, method

__all__ = ["CalibratedEntropy", "Entropy"]


@method("entropy")
class Entropy(Method):
    """Of the student's backbone."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """In bits, 1 at a probability of one half."""
        return entropy(seen.prob_BHW)


@method("calibrated_entropy")
class CalibratedEntropy(Method):
    """Of the same backbone, calibrated: weighted fire pixels in training move where it is in doubt."""

    def unc(self, seen: SeenBatch) -> FloatMaps:
        """In bits, 1 where the calibrated probability is one half."""
        return entropy(_recalibration(seen.predictors).apply(seen.prob_BHW))

    def check(self, predictors: Predictors) -> None:
        """A calibration is made with the student; too few validation fires allow none, which is said."""
        if predictors.student is None:
            raise ConfigError(
                "methods: calibrated_entropy needs a student, whose calibration it uses; add student to --methods, or "
                "leave it out"
            )
        if _recalibration(predictors) is NONE:
            warn(f"{predictors.student.folder}: has no calibration, so that calibrated_entropy is entropy here")


def _recalibration(predictors: Predictors) -> Recalibration:
    student = predictors.student
    assert student is not None
    calibration = load_calibration(student.folder, student.head.key)
    return NONE if calibration is None else calibration.recalibration

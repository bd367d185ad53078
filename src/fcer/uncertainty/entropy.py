"""Entropy of a backbone's probability (Shannon 1948), which costs nothing, and of that probability once calibrated."""

from fcer.core.disagreement import entropy
from fcer.errors import ConfigError
from fcer.models.calibration_files import Calibration, load_calibration
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
        calibration = _calibration(seen.predictors)
        assert calibration is not None
        return entropy(calibration.recalibration.apply(seen.prob_BHW))

    def check(self, predictors: Predictors) -> None:
        """There must be a calibration, which is made with the student."""
        if _calibration(predictors) is None:
            raise ConfigError(
                "methods: calibrated_entropy needs a student with a calibration, and there is none; add student to "
                "--methods, or run fcer calibrate on it, or leave calibrated_entropy out"
            )


def _calibration(predictors: Predictors) -> Calibration | None:
    student = predictors.student
    return None if student is None else load_calibration(student.folder, student.head.key)

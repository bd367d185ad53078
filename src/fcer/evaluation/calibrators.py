"""Calibrators by name beside those of `core/recalibration.py`: `@calibrator("name")`, or another package's entry point.

[project.entry-points."fcer.calibrators"]
my_calibrator = "my_package:MyCalibrator"
"""

from typing import Any

from fcer.core.recalibration import KINDS
from fcer.core.recalibration_fits import Calibrator
from fcer.runtime import doors
from fcer.runtime.doors import Door, made_as

__all__ = ["calibrator"]


def _accepted(name: str, kind: Any) -> Calibrator:
    if name in KINDS:
        raise ValueError("the name is taken")
    return made_as(Calibrator, kind, "it lacks fit of fcer.core.recalibration_fits.Calibrator")


calibrator: Door[Calibrator] = Door(doors.CALIBRATORS, _accepted)
"""`@calibrator("name")` registers a class."""

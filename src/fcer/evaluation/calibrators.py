"""Calibrators by name beside those of `core/recalibration.py`: `@calibrator("name")`, or another package's entry point.

[project.entry-points."fcer.calibrators"]
my_calibrator = "my_package:MyCalibrator"
"""

from typing import Any

from fcer.core.recalibration import KINDS, Calibrator
from fcer.runtime import doors
from fcer.runtime.doors import Door

__all__ = ["calibrator"]


def _accepted(name: str, kind: Any) -> Calibrator:
    if name in KINDS:
        raise ValueError("the name is taken")
    made = kind() if isinstance(kind, type) else kind
    if not isinstance(made, Calibrator):
        raise TypeError("it lacks fit of fcer.core.recalibration.Calibrator")
    return made


calibrator: Door[Calibrator] = Door(doors.CALIBRATORS, _accepted)
"""`@calibrator("name")` registers a class."""

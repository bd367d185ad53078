"""Which validation fires choose epochs, and which calibrate, so that no fire does both where there are enough."""

import hashlib
from collections.abc import Sequence

from fcer.core.risk_control import ENOUGH_FIRES
from fcer.data.fire import Fire

__all__ = ["calibrating", "choosing", "enough_to_part"]


def enough_to_part(fires: Sequence[Fire]) -> bool:
    """Whether each part of the fires is large enough to do its work alone."""
    return min(len(choosing(fires)), len(calibrating(fires))) >= ENOUGH_FIRES


def choosing(fires: Sequence[Fire]) -> tuple[Fire, ...]:
    """The half that chooses epochs and backbones."""
    return tuple(fire for fire in fires if not _calibrates(fire))


def calibrating(fires: Sequence[Fire]) -> tuple[Fire, ...]:
    """The other half."""
    return tuple(fire for fire in fires if _calibrates(fire))


def _calibrates(fire: Fire) -> bool:
    """By the fire's name alone: it stays in its half whatever other fires come or go."""
    return hashlib.sha256(fire.name.encode()).digest()[0] % 2 == 1

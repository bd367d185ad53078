"""Conformal risk control by fire: the smallest zone of a nested family whose expected miss is at most α.

After Angelopoulos et al. (2024), with one loss a fire: days of one fire resemble each other, so that fires, not
images, are what can be exchanged. A fire's loss is the mean, over its days on which something burnt, of the share of
the burnt pixels that lies outside the zone. A day on which nothing burnt has no such share: it is left out of its
fire's mean, rather than counted as a day without a miss, which would let quiet days pay for bad ones. A fire without
any burnt day has no loss and is not among the fires that count.

Zones stand in a row from the smallest to the largest, which is the whole image and misses nothing.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fcer.core.arrays import FloatArray
from fcer.errors import InputError

__all__ = ["ENOUGH_FIRES", "ControlledRisk", "check_miss", "control_risk", "cross_bound", "smallest_miss", "zone_as_if"]

ENOUGH_FIRES = 39
"""That calibrate alone: what is reserved for the fire that is not seen yet, 1/(n + 1), is then 0.025, half of the
smallest miss that zones are drawn for by default. Fewer leave ever less for what their own zones may miss."""

_ROUNDING = 1e-12


class ControlledRisk(NamedTuple):
    """A place in the row of zones, and what is known of it."""

    place: int
    bound: float
    """Of the expected miss: at most what was asked for."""
    empirical: float
    """Mean loss of the calibration fires."""
    n_fires: int
    reserved: int
    """Fires that are taken to lose everything, for the one that is not seen yet: 1, or the largest group's size."""


def smallest_miss(n_fires: int, reserved: int = 1) -> float:
    """The least expected miss that so many fires can guarantee.

    >>> smallest_miss(9)
    0.1
    """
    return reserved / (n_fires + reserved)


def check_miss(miss: float, n_fires: int, reserved: int = 1) -> None:
    """A sentence for a miss that cannot be guaranteed."""
    if not 0 < miss < 1:
        raise InputError(f"a miss of {miss:g} cannot be asked for; give a share between 0 and 1, such as 0.1")
    least = smallest_miss(n_fires, reserved)
    if miss < least - _ROUNDING:
        groups = f" in groups of up to {reserved}" if reserved > 1 else ""
        needed = math.ceil(reserved / miss - reserved - _ROUNDING)
        raise InputError(
            f"a miss of {miss:g} cannot be guaranteed by {n_fires} calibration fires{groups}: the smallest possible is "
            f"{reserved}/({n_fires} + {reserved}) = {_rounded_up(least):g}; ask for that or more, or calibrate on "
            f"{needed} fires"
        )


def control_risk(losses: ArrayLike, miss: float, group: ArrayLike | None = None) -> ControlledRisk:
    """The smallest zone whose expected miss on a new fire is at most `miss`.

    With n fires' losses and 1 for the fire that is not seen yet, (sum + 1) / (n + 1) bounds the expected loss of any
    fire that could have changed places with them (in expectation over fires and calibrations; not fire by fire).

    Parameters
    ----------
    losses
        (fires, zones), from 0 to 1, never rising along the row, 0 for the last zone. Rows of NaN, fires without burnt
        pixels, are left out.
    miss
        The expected miss that is allowed, α.
    group
        Cross-fitting: the group of each fire, whose losses come from a model that was not trained on any fire of the
        group. The bound is then (sum + m) / (n + m) with m fires in the largest group, which leave-one-fire-out makes
        the same as above. It holds for zones that are the union of those of all groups' models (the largest of
        their scores, pixel by pixel), with groups of equal size dealt by chance: suppose that the new fire had a group
        of m of its own and that models had been trained without any pair of groups; then all K + 1 groups could
        change places, the new fire loses at most what it loses to the best model, every other fire at least
        that, and the new group's m fires at most m. For one model trained on all fires there is no such bound.
    """
    known, m = _check_losses(losses, group)
    check_miss(miss, len(known), m)
    total = known.sum(axis=0)
    place = _first_allowed(total + m, miss * (len(known) + m))
    bound = float((total[place] + m) / (len(known) + m))
    return ControlledRisk(place, bound, float(total[place] / len(known)), len(known), m)


def cross_bound(losses: ArrayLike, place: int, group: ArrayLike) -> float:
    """What cross-fitted losses bound the expected miss of a zone by, whatever the groups' models; see `control_risk`.

    >>> cross_bound([[0.5, 0.0], [0.1, 0.0], [0.0, 0.0], [0.2, 0.0]], 0, ["a", "a", "b", "b"])
    0.4666666666666666
    """
    known, m = _check_losses(losses, group)
    return float((known[:, place].sum() + m) / (len(known) + m))


def zone_as_if(losses: ArrayLike, miss: float, times: float) -> int:
    """Which zone `times` as many fires would choose if their losses were like these: what few fires cost.

    Infinity: the zone that loses `miss` on these fires themselves.
    """
    known, m = _check_losses(losses, None)
    reserve = 0.0 if math.isinf(times) else m / (times * len(known))
    return _first_allowed(known.mean(axis=0) + reserve, miss * (1 + reserve))


def _check_losses(losses: ArrayLike, group: ArrayLike | None) -> tuple[FloatArray, int]:
    """The fires that have a loss, and how many the largest group has."""
    table = np.asarray(losses, dtype=np.float64)
    counts = ~np.isnan(table).any(axis=1)
    known = table[counts]
    if not len(known):
        raise InputError(
            "no calibration fire has burnt pixels, so that nothing can be missed; give maps of days with fire"
        )
    if len(known) < 2:
        raise InputError("one calibration fire guarantees nothing of another; give maps of two fires at least")
    if (known < 0).any() or (known > 1).any() or (np.diff(known, axis=1) > _ROUNDING).any() or known[:, -1].any():
        raise ValueError("losses lie between 0 and 1, never rise along the row of zones, and end with 0")
    if group is None:
        return known, 1
    _, sizes = np.unique(np.asarray(group)[counts], return_counts=True)
    if len(sizes) < 2:
        raise InputError("cross-fitting needs two groups of fires at least; deal the fires to more")
    return known, int(sizes.max())


def _first_allowed(cost: FloatArray, allowed: float) -> int:
    fits = cost <= allowed * (1 + _ROUNDING)
    return int(np.argmax(fits)) if fits.any() else cost.size - 1


def _rounded_up(share: float) -> float:
    """To four digits, so that asking for what is written is asking for enough."""
    return math.ceil(share * 1e4 - _ROUNDING) / 1e4

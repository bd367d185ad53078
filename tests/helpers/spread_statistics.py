"""How a fire's pixels change from day to day: the numbers that synthetic and real fires are compared by."""

from collections.abc import Iterable

import numpy as np
from scipy import ndimage

from fcer.data.channels import ACTIVE_FIRE
from fcer.data.fire import Fire

DISTANCES = (1.5, 2.9, 4.0, 8.0, 16.0)

REAL = {
    "persistence precision": 0.40,
    "persistence recall": 0.41,
    "day-to-day ratio, 10th": 0.37,
    "day-to-day ratio, 50th": 1.03,
    "day-to-day ratio, 90th": 2.60,
    "new fire within 1.5 px": 0.51,
    "new fire within 2.9 px": 0.64,
    "new fire within 4 px": 0.71,
    "new fire within 8 px": 0.82,
    "new fire within 16 px": 0.91,
    "components, 50th": 19,
    "components, 90th": 60,
    "single pixels among components": 0.43,
}
"""Of 177 pairs of days of fires in the western United States, 2020, counted independently of this project."""


def spread_statistics(fires: Iterable[Fire]) -> dict[str, float]:
    """The same numbers of some fires, over pairs of days that both have fire."""
    kept = today_pixels = tomorrow_pixels = 0
    ratios, distances, components, singles = [], [], [], 0
    for fire in fires:
        burning = fire.read(slice(None), (ACTIVE_FIRE,))[:, 0] > 0
        for first in fire.first_days(1):
            today, tomorrow = burning[first], burning[first + 1]
            if not today.any() or not tomorrow.any():
                continue
            kept += int((today & tomorrow).sum())
            today_pixels += int(today.sum())
            tomorrow_pixels += int(tomorrow.sum())
            ratios.append(tomorrow.sum() / today.sum())
            distances.append(ndimage.distance_transform_edt(~today)[tomorrow & ~today])
            labels, n = ndimage.label(tomorrow, np.ones((3, 3)))
            components.append(n)
            singles += int((np.bincount(labels.ravel())[1:] == 1).sum())
    new = np.concatenate(distances)
    numbers = [kept / today_pixels, kept / tomorrow_pixels, *np.percentile(ratios, [10, 50, 90])]
    numbers += [(new <= reach).mean() for reach in DISTANCES]
    numbers += [*np.percentile(components, [50, 90]), singles / sum(components)]
    return {name: float(number) for name, number in zip(REAL, numbers, strict=True)}


def side_by_side(**columns: dict[str, float]) -> str:
    """A table, a column for each."""
    lines = ["".join(f"{name:>12}" for name in ("", *columns)).rjust(32 + 12 * len(columns))]
    lines += [f"{row:<32}" + "".join(f"{column[row]:>12.2f}" for column in columns.values()) for row in REAL]
    return "\n".join(lines)

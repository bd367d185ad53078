"""How a synthetic fire spreads: a stochastic process on the pixel grid, and what a satellite sees of it.

A burning pixel may ignite its eight neighbours in each step, more readily downwind, uphill and into dry, dense
fuel; strong wind also throws embers ahead. Pixels burn out and never burn again. Chance decides every step, so
tomorrow's fire is never certain from today's image: the uncertainty that models should learn is real.
"""

import numpy as np
from numpy.typing import NDArray

from fcer.core.regions import PIXEL_METRES
from fcer.data.synthetic.landscape import Land, Weather

__all__ = ["OVERPASS_HOURS", "FireState", "burn_day", "ignite"]

STEPS_PER_DAY = 8
OVERPASS_STEPS = (3, 7)
OVERPASS_HOURS = (10, 21)
"""Hour (UTC) that a detection at each overpass is recorded with."""

READINESS = 0.17
"""Chance that a burning pixel lights a neighbour in one step, on flat land without wind, in average fuel."""

FAR_FIRES = 1 / 60
"""Fires a day that begin far from any other, for each burning pixel: lightning, firebrands, other causes. A fifth of
the new pixels of real fires lie more than 8 px from the day before's."""

SPENT = 0.16
"""Chance that a pixel of thin fuel burns out in one step; dense fuel takes twice as long."""

_NEIGHBOURS = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]

Mask = NDArray[np.bool_]


class FireState:
    """Which pixels burn now and which have burnt."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.burning: Mask = np.zeros(shape, bool)
        self.burnt: Mask = np.zeros(shape, bool)


def ignite(rng: np.random.Generator, state: FireState, land: Land) -> None:
    """Light a few neighbouring pixels near the image's centre, where there is fuel."""
    height, width = state.burning.shape
    rows, columns = np.indices((height, width))
    centre = np.array([height, width]) / 2 + rng.uniform(-0.06, 0.06, 2) * (height, width)
    distance = np.hypot(rows - centre[0], columns - centre[1])
    start = np.argmin(distance + 40 * (land.fuel < 0.3))
    near = np.hypot(rows - start // width, columns - start % width) <= rng.uniform(1, 3.5)
    state.burning = near & (land.fuel > 0)


def burn_day(
    rng: np.random.Generator, state: FireState, land: Land, weather: Weather, effort: float
) -> list[tuple[int, Mask]]:
    """Let the fire burn for a day; `effort` (0 to 1) is how far it is contained.

    Returns what an overpass could see: (hour, burning pixels) for each.
    """
    towards = np.radians(weather.wind_direction + 180)
    wind = np.array([-np.cos(towards), np.sin(towards)]) * weather.wind_speed  # (southward, eastward)
    receptive = land.fuel * np.clip(1.25 - land.moisture, 0, None) * weather.dryness * (1 - effort)
    _begin_far(rng, state, land, receptive)
    seen = []
    for step in range(STEPS_PER_DAY):
        _step(rng, state, land, wind, receptive)
        if step in OVERPASS_STEPS:
            hour = OVERPASS_HOURS[OVERPASS_STEPS.index(step)]
            seen.append((hour, state.burning.copy()))
    return seen


def _step(
    rng: np.random.Generator,
    state: FireState,
    land: Land,
    wind: NDArray[np.float64],
    receptive: NDArray[np.float64],
) -> None:
    box = _around(state.burning)
    if box is None:
        return
    burning, burnt = state.burning[box], state.burnt[box]
    flames = np.pad(burning, 1)
    height = np.pad(land.elevation[box], 1, mode="edge")
    safe = np.ones(burning.shape)
    for down, right in _NEIGHBOURS:
        # What burns at (row - down, column - right) may reach (row, column)
        there = (slice(1 - down, 1 - down + burning.shape[0]), slice(1 - right, 1 - right + burning.shape[1]))
        distance = np.hypot(down, right)
        rise = np.clip((height[1:-1, 1:-1] - height[there]) / (PIXEL_METRES * distance), -0.5, 0.5)
        along = (wind[0] * down + wind[1] * right) / distance
        reach = READINESS * np.exp(0.28 * along + 2.0 * rise) * receptive[box] / distance**2
        safe *= 1 - flames[there] * np.minimum(reach, 0.9)
    lit = (rng.random(burning.shape) > safe) & ~burning & ~burnt & (land.fuel[box] > 0)
    # Dense fuel burns longer: about half a day to a day and a half
    spent = burning & (rng.random(burning.shape) < SPENT - 0.5 * SPENT * land.fuel[box])
    state.burnt[box] |= spent
    state.burning[box] = (burning & ~spent) | lit
    _spot(rng, state, wind, receptive)


def _spot(
    rng: np.random.Generator,
    state: FireState,
    wind: NDArray[np.float64],
    receptive: NDArray[np.float64],
) -> None:
    """Embers: a few pixels downwind, where they find fuel."""
    speed = float(np.hypot(*wind))
    rows, columns = np.nonzero(state.burning)
    flying = rng.random(len(rows)) < 0.0006 * speed
    if not flying.any():
        return
    distance = rng.gamma(2.0, 1.0 + 0.4 * speed, int(flying.sum()))
    angle = np.arctan2(wind[1], wind[0]) + rng.normal(0, 0.3, len(distance))
    landed_rows = np.rint(rows[flying] + distance * np.cos(angle)).astype(int)
    landed_columns = np.rint(columns[flying] + distance * np.sin(angle)).astype(int)
    height, width = state.burning.shape
    for row, column in zip(landed_rows, landed_columns, strict=True):
        inside = 0 <= row < height and 0 <= column < width
        if inside and not state.burnt[row, column] and rng.random() < receptive[row, column]:
            state.burning[row, column] = True


def _begin_far(rng: np.random.Generator, state: FireState, land: Land, receptive: NDArray[np.float64]) -> None:
    """New fires, a few pixels wide, 8 px and more from a burning pixel, where there is fuel that takes it."""
    rows, columns = np.nonzero(state.burning)
    height, width = state.burning.shape
    grid_rows, grid_columns = np.ogrid[:height, :width]
    for _ in range(rng.poisson(FAR_FIRES * len(rows))):
        start = rng.integers(len(rows))
        distance, angle = 8 + rng.exponential(14), rng.uniform(0, 2 * np.pi)
        row, column = rows[start] + distance * np.cos(angle), columns[start] + distance * np.sin(angle)
        radius = rng.uniform(1, 2.5)
        inside = 0 <= row < height - 1 and 0 <= column < width - 1
        if inside and rng.random() < receptive[round(row), round(column)]:
            near = np.hypot(grid_rows - row, grid_columns - column) <= radius
            state.burning |= near & (land.fuel > 0) & ~state.burnt


def _around(mask: Mask) -> tuple[slice, slice] | None:
    """The part of the image that one step can reach: almost always small against the whole."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    return (
        slice(max(0, rows[0] - 1), rows[-1] + 2),
        slice(max(0, columns[0] - 1), columns[-1] + 2),
    )

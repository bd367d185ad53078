"""Which forecasts are of one fire: by name, or because their images overlap, whatever they are called.

A fire made of detections is named by the middle of its image, which moves as the fire grows; and neighbouring images
show the same flames. What overlaps is therefore one fire to every test.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

__all__ = ["fire_numbers"]

_EDGES = ["west", "south", "east", "north"]


def fire_numbers(rows: pd.DataFrame) -> list[int]:
    """The number of each row's fire. Rows are by date: what was told of earlier ones never changes with later ones."""
    by_name: dict[str, int] = {}
    boxes: list[Sequence[float]] = []
    owners: list[int] = []
    numbers = []
    for name, *box in rows[["fire", *_EDGES]].itertuples(index=False):
        number = by_name.get(name)
        if number is None:
            number = _overlapping(box, boxes, owners)
        if number is None:
            number = len(set(owners) | set(by_name.values()))
        by_name[name] = number
        boxes.append(box)
        owners.append(number)
        numbers.append(number)
    return numbers


def _overlapping(box: Sequence[float], boxes: Sequence[Sequence[float]], owners: Sequence[int]) -> int | None:
    """The fire of the first box that overlaps; NaN, where nobody knows the place, overlaps nothing."""
    if not boxes or np.isnan(box).any():
        return None
    west, south, east, north = np.array(boxes).T
    hit = np.flatnonzero((west < box[2]) & (east > box[0]) & (south < box[3]) & (north > box[1]))
    return owners[hit[0]] if hit.size else None

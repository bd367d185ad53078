"""Which forecasts are of one fire: by name, or because their images overlap, whatever they are called.

A fire made of detections is named by the middle of its image, which moves as the fire grows; and neighbouring images
show the same flames. What overlaps is therefore one fire to every test.
"""

import numpy as np
import pandas as pd

from fcer.core.arrays import BoolArray, FloatArray

__all__ = ["fire_numbers"]


def fire_numbers(rows: pd.DataFrame) -> list[int]:
    """The number of each row's fire. Rows are by date: what was told of earlier ones never changes with later ones."""
    boxes = rows[["west", "south", "east", "north"]].to_numpy(dtype=float)
    by_name: dict[str, int] = {}
    numbers: list[int] = []
    for k, name in enumerate(rows["fire"]):
        if name not in by_name:
            same = np.flatnonzero(_overlap(boxes[:k], boxes[k]))
            by_name[name] = numbers[same[0]] if same.size else max(numbers, default=-1) + 1
        numbers.append(by_name[name])
    return numbers


def _overlap(boxes: FloatArray, box: FloatArray) -> BoolArray:
    """NaN, where nobody knows the place, overlaps nothing."""
    return np.asarray(((boxes[:, :2] < box[2:]) & (boxes[:, 2:] > box[:2])).all(axis=1))

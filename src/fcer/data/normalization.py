"""Standardisation of raw channels: the released statistics by training years, or those of the data at hand."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ANGLES, CHANNELS, LAND_COVER
from fcer.data.survey import Survey, merge_moments
from fcer.errors import ConfigError

__all__ = ["Normalization", "computed", "released"]


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each raw channel; 0 and 1 for angles and land cover, which stay as they are."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    origin: str
    """Which data they are of, in words."""

    def arrays(self, channels: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and deviation of some channels, shaped to meet (days, channels, rows, columns)."""
        pick = list(channels)
        return (
            np.array(self.mean, np.float32)[pick, None, None],
            np.array(self.std, np.float32)[pick, None, None],
        )


def released(train_years: Iterable[int]) -> Normalization:
    """The statistics that checkpoints trained on these years expect, whatever the data."""
    key = "-".join(str(year) for year in sorted(train_years))
    table = _released_table()
    if key not in table:
        raise ConfigError(f"no released statistics for the training years {key}; there are {', '.join(table)}")
    return Normalization(*table[key], origin=f"released statistics of {key}")


def computed(surveys: Iterable[Survey], years: Iterable[int]) -> Normalization:
    """The statistics of the surveyed fires: population standard deviation, missing values left out."""
    moments = [(0.0, 0.0, 0.0)] * len(CHANNELS)
    for survey in surveys:
        rows = zip(survey.count, survey.mean, survey.squares, strict=True)
        moments = [merge_moments(old, new) for old, new in zip(moments, rows, strict=True)]
    span = "-".join(str(year) for year in sorted(years))
    kept = (*ANGLES, LAND_COVER)
    mean = tuple(0.0 if c in kept else m for c, (_, m, _) in enumerate(moments))
    # A channel that never varies, or is empty everywhere, carries nothing; 1 keeps it at 0 instead of dividing by 0
    std = tuple(1.0 if c in kept or s <= 0 else float(np.sqrt(s / n)) for c, (n, _, s) in enumerate(moments))
    return Normalization(mean, std, origin=f"computed from {span}")


@cache
def _released_table() -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    content = json.loads(files("fcer.data").joinpath("wsts_stats.json").read_text())
    both = {**content["wsts"], **content["wsts_plus"]}
    return {years: (tuple(stats["mean"]), tuple(stats["std"])) for years, stats in both.items()}

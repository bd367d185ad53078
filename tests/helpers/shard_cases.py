"""Maps for the engine that adds up shards: many distinct uncertainties, and stretches of images without fire."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from fcer.evaluation import Results
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from plain_fcer import METHODS

TABLES = [
    *("sweep", "segmentation", "per_image", "tests", "anchor", "intervals", "sensitivity", "reliability"),
    *("corp", "own_errors", "risk_coverage"),
]
IMAGES = 5
"""Of a shard in most of these tests: the maps below are four shards, the second of which has no fire."""


def fire_arrays(
    seed: int = 0, dtype: type = np.float32, n_images: int = 18, padding: bool = False
) -> dict[str, np.ndarray]:
    """Fires of several days with a rough edge, some at the edge of their image, and methods that err."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:27, :29]
    size = np.full((n_images, 2), rows.shape)
    if padding:
        size[n_images // 3 :] -= rng.integers(0, 9, size[n_images // 3 :].shape)
    inside = (rows < size[:, 0, None, None]) & (columns < size[:, 1, None, None])
    centre = (rng.uniform(0, 1, (n_images, 2)) * size).T[..., None, None]
    depth = rng.uniform(3, 6, (n_images, 1, 1)) - np.hypot(centre[0] - rows, centre[1] - columns)
    fire = (depth + rng.standard_normal(depth.shape) > 0) & inside
    fire[IMAGES : 2 * IMAGES] = fire[-1:] = False
    stacks = {"y": fire.astype(np.uint8), "fire_id": np.array([f"{i // 3:03d}" for i in range(n_images)])}
    for method in METHODS:
        prob = 1 / (1 + np.exp(-depth - rng.standard_normal(depth.shape) * 1.5))
        unc = 4 * prob * (1 - prob) * rng.uniform(0.3, 1, prob.shape)
        stacks |= {f"{method}_prob": prob.astype(dtype), f"{method}_unc": unc.astype(dtype)}
    return stacks | ({"size": size} if padding else {})


def fire_maps(year: int = 2018, **options: Any) -> PredictedMaps:
    return PredictedMaps.from_arrays(fire_arrays(seed=year, **options), year=year)


def written(folder: Path, suffix: str, stacks: dict[str, np.ndarray]) -> Path:
    """A file of maps as they are, good or bad."""
    path = folder / f"predictions_2018{suffix}"
    write_maps(path, PredictedMaps.from_arrays(stacks, year=2018, values=False))
    return path


def is_open(path: Path) -> bool:
    """Whether this process holds the file open."""
    return str(path.resolve()) in [file.path for file in psutil.Process().open_files()]


class Lazy:
    """An array that can be sliced, and is nothing else that numpy knows."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, images: slice) -> np.ndarray:
        return self._array[images]


def lazy_arrays(stacks: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: Lazy(stack) if stack.ndim == 3 else stack for name, stack in stacks.items()}


def assert_same_bits(ours: Results, theirs: Results) -> None:
    assert ours.settings == theirs.settings
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name), check_exact=True)


_SUMMED = dict.fromkeys(
    (
        *("brier", "nll", "brier_skill", "nll_skill", "ece", "ece_mass", "asd_m", "asd_common_m", "hausdorff95_m"),
        *("mean_prob", "miscalibration", "band_low", "band_high", "value", "ci_low", "ci_high"),
    ),
    1e-9,
)


def assert_close(ours: pd.DataFrame, theirs: pd.DataFrame, **tolerances: float) -> None:
    """Counts and names to the last bit, ranks to 1e-12, sums to 1e-9, and what is named to what is said of it."""
    assert list(ours) == list(theirs) and (ours.dtypes == theirs.dtypes).all()
    for column in theirs:
        if theirs[column].dtype.kind == "f":
            atol = {**_SUMMED, **tolerances}.get(column, 1e-12)
            np.testing.assert_allclose(ours[column], theirs[column], rtol=0, atol=atol, err_msg=column)
        else:
            assert ours[column].tolist() == theirs[column].tolist(), column

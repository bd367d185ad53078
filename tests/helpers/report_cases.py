"""Small predicted maps to report on."""

from pathlib import Path

import numpy as np

from fcer.maps.predicted_maps import PredictedMaps, write_maps


def some_arrays(seed: int, methods: tuple[str, ...] = ("student", "ensemble"), n_images: int = 12, size: int = 32):
    """Round fires of several sizes, three images to a fire, and methods that are wrong here and there."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    centre = rng.uniform(10, size - 10, (2, n_images, 1, 1))
    inside = rng.uniform(2, 8, (n_images, 1, 1)) - np.hypot(rows - centre[0], columns - centre[1])
    fire = inside + rng.standard_normal(inside.shape) > 0
    arrays = {"y": fire.astype(np.uint8), "fire_id": np.array([f"{i // 3:03d}" for i in range(n_images)])}
    for method in methods:
        prob = 1 / (1 + np.exp(-inside - rng.standard_normal(inside.shape) * 1.5))
        unc = np.round(4 * prob * (1 - prob) * rng.uniform(0.3, 1, prob.shape), 2)
        arrays |= {f"{method}_prob": prob.astype(np.float32), f"{method}_unc": unc.astype(np.float32)}
    return arrays


def some_maps(year: int, **options) -> PredictedMaps:
    return PredictedMaps.from_arrays(some_arrays(year, **options), year=year)


def write_years(folder: Path, years: tuple[int, ...], **options) -> list[Path]:
    paths = [folder / f"predictions_{year}.npz" for year in years]
    for year, path in zip(years, paths, strict=True):
        write_maps(path, some_maps(year, **options))
    return paths

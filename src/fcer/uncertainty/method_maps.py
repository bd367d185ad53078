"""The maps of a year by every method that is compared, from as few passes as they need."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from fcer.data.samples import Samples
from fcer.errors import ConfigError, DataError
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from fcer.models.ensemble import batches_of, sample_labels, sample_sizes
from fcer.runtime.files import scratch_folder
from fcer.uncertainty.predictors import Predictors, SeenBatch
from fcer.uncertainty.registry import Draws, method_named

__all__ = ["pass_counts", "write_method_maps"]


def pass_counts(predictors: Predictors, methods: Sequence[str]) -> dict[str, int]:
    """How many passes through a backbone each method takes where it runs alone."""
    return {name: method_named(name).passes(predictors) for name in methods}


def write_method_maps(path: Path, predictors: Predictors, samples: Samples, year: int, methods: Sequence[str]) -> None:
    """Predict every sample and write each method's maps as predicted maps of `year`.

    Maps go to disk as they are made: a year never has to fit in memory. Whole images, which differ in size, are
    padded to the largest.
    """
    if len(predictors.members) < 2:
        raise ConfigError(f"checkpoints: an ensemble needs two members or more, but there is {len(predictors.members)}")
    by_name = {name: method_named(name) for name in methods}
    for method in by_name.values():
        method.check(predictors)
    if not len(samples):
        raise DataError(f"{year}: no fire has {samples.days + 1} days in a row, which a sample takes; add longer fires")
    sizes = sample_sizes(samples)
    shape = (len(samples), *sizes.max(axis=0).tolist())
    names = [f"{name}_{kind}" for name in methods for kind in ("prob", "unc")]
    with scratch_folder(path.parent, "maps") as folder:
        arrays = {
            name: np.lib.format.open_memmap(
                folder / f"{name}.npy", "w+", np.uint8 if name == "y" else np.float32, shape
            )
            for name in ("y", *names)
        }
        drawn = {name: method for name, method in by_name.items() if isinstance(method, Draws)}
        for name in drawn:
            wide = (shape[0], predictors.dropout_passes, *shape[1:])
            arrays[f"{name}_samples"] = np.lib.format.open_memmap(folder / f"{name}_samples.npy", "w+", np.uint8, wide)
        with tqdm(total=len(samples), desc=f"predict {year}", unit="sample", disable=None, leave=False) as bar:
            for where in batches_of(samples):
                read = [samples.raw(k) for k in range(where.start, where.stop)]
                seen = SeenBatch(predictors, samples, where.start, read)
                rows, columns = sizes[where.start]
                place = where, slice(rows), slice(columns)
                arrays["y"][place] = [y for _, y in read]
                for name, method in by_name.items():
                    arrays[f"{name}_prob"][place] = method.prob(seen)
                    arrays[f"{name}_unc"][place] = method.unc(seen)
                for name, drawing in drawn.items():
                    arrays[f"{name}_samples"][where, :, :rows, :columns] = drawing.samples(seen)
                bar.update(where.stop - where.start)
        labels: dict[str, NDArray[Any]] = {**sample_labels(samples)}
        if samples.crop is None:
            labels["size"] = sizes
        write_maps(path, PredictedMaps.from_arrays({**arrays, **labels}, year=year, source=str(path)))

"""The evaluation in shards: time and memory of a worker over the number of maps, and two workers against one.

Maps are generated where they are read, by their index alone, in half precision: nothing of them is stored, so time
and memory are those of the evaluation. Workers are those of a Dask cluster, `--cluster local:N`.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from tests.benchmarks.fcer_evaluation import DAYS, SIZE, fake_maps, peak_memory_mb
from tests.helpers.plain_fcer import METHODS

from fcer.evaluation import evaluate
from fcer.maps.predicted_maps import PredictedMaps
from fcer.runtime.cluster import connected

COUNTS = (5_000, 15_000, 50_000)
ROOT = Path(__file__).parents[2]
_ORIGINALS = 48


@dataclass(frozen=True)
class GeneratedMaps:
    """Maps (N, H, W) of one name that are made when they are sliced: a few originals, turned and shifted."""

    name: str
    n_images: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, H, W)."""
        return self.n_images, SIZE, SIZE

    @property
    def dtype(self) -> np.dtype:
        """One byte for fire, two for the rest."""
        return _originals()[self.name].dtype

    def __getitem__(self, images: slice) -> np.ndarray:
        return np.stack([self._image(i) for i in range(*images.indices(self.n_images))])

    def _image(self, index: int) -> np.ndarray:
        original, turn = index % _ORIGINALS, index // _ORIGINALS
        image = np.rot90(_originals()[self.name][original], turn % 4)
        image = image.T if turn // 4 % 2 else image
        # both primes, so that it takes long until a shift comes again
        return np.roll(image, ((turn * 7) % 31 - 15, (turn * 11) % 29 - 14), axis=(0, 1))


@cache
def _originals() -> dict[str, np.ndarray]:
    arrays = fake_maps(_ORIGINALS)
    return {name: a.astype(np.float16) if a.dtype.kind == "f" else a for name, a in arrays.items()}


def generated(n_images: int) -> PredictedMaps:
    """Two methods on so many images, six to a fire."""
    names = ["y", *(f"{method}_{kind}" for method in METHODS for kind in ("prob", "unc"))]
    arrays = {name: GeneratedMaps(name, n_images) for name in names}
    fire_id = np.array([f"fire_{i // DAYS}" for i in range(n_images)])
    return PredictedMaps.from_arrays({**arrays, "fire_id": fire_id}, year=2021, values=False)


def main(counts: Sequence[int] = COUNTS) -> None:
    """Print the table and the ratio."""
    print(f"\nevaluation in shards, maps of {SIZE}x{SIZE} in half precision, 2 methods, 1000 draws, 2 workers")
    print("  maps  seconds  ms a map  worker MB  parent MB")
    for count in counts:
        seconds, worker, parent = _measured_apart(count, workers=2)
        print(f"{count:6d}  {seconds:7.1f}  {1e3 * seconds / count:8.2f}  {worker:9.0f}  {parent:9.0f}", flush=True)
        if count == counts[0]:
            two = seconds
    one, _, _ = _measured_apart(counts[0], workers=1)
    print(f"  2 workers against 1, {counts[0]} maps: {one:.1f} s against {two:.1f} s, {one / two:.2f}x")


def _measured_apart(count: int, workers: int) -> tuple[float, float, float]:
    """Seconds, and MB of a worker and of the process that adds up, in processes of their own."""
    # not as a program of its own: workers are to find what it sends them by the module's name
    call = f"from tests.benchmarks.large_evaluation import measure; measure({count}, {workers})"
    command = [sys.executable, "-c", call]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    seconds, worker, parent = map(float, output.split())
    return seconds, worker, parent


def measure(count: int, workers: int) -> None:
    """Print what `_measured_apart` reads."""
    maps = generated(count)
    with connected(f"local:{workers}"):
        begin = time.perf_counter()
        evaluate(maps, engine="shards", progress=None)
        took = time.perf_counter() - begin
    print(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, peak_memory_mb())

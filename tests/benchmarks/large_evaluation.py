"""The evaluation in shards: time and memory of a worker over the number of maps, and two workers against one.

Maps are generated where they are read, by their index alone, in half precision: nothing of them is stored, so time
and memory are those of the evaluation. Workers are those of a Dask cluster, `--cluster local:N`.
"""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from tests.benchmarks.fcer_evaluation import DAYS, SIZE, fake_maps
from tests.benchmarks.rows import grows, hold, show
from tests.benchmarks.timing import apart, peak_memory_mb
from tests.helpers.plain_fcer import METHODS

from fcer.evaluation import evaluate
from fcer.maps.predicted_maps import PredictedMaps
from fcer.runtime.cluster import connected

COUNTS = (2_000, 6_000)
"""50 000 take minutes: `main((5_000, 15_000, 50_000))`."""
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
    """Print the rows: maps in half precision, 2 methods, 1000 draws."""
    points, workers = [], []
    for count in counts:
        seconds, worker, parent = apart("large_evaluation", f"measure({count}, 2)")
        points.append((count, seconds, parent))
        workers.append((count, seconds, worker))
    grows("evaluate in shards, 2 workers", "maps", points)
    hold("  memory of a worker, most maps against fewest", workers[-1][2] / workers[0][2], 1.3)
    one, _, _ = apart("large_evaluation", f"measure({counts[-1]}, 1)")
    show(f"evaluate in shards, {counts[-1]} maps: two workers against one", points[-1][1], one, 1.15)


def measure(count: int, workers: int) -> None:
    """Print seconds, and MB of a worker and of the process that adds up."""
    maps = generated(count)
    with connected(f"local:{workers}"):
        begin = time.perf_counter()
        evaluate(maps, engine="shards", progress=None)
        took = time.perf_counter() - begin
    print(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, peak_memory_mb())

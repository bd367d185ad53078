"""The whole FCER evaluation of stored maps against the plain way, and how it grows with the number of images.

The plain way is scikit-learn on every region, made by `binary_dilation`; it is also the judge: the largest
difference between the two is printed beside the ratio.
"""

import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from scipy import ndimage
from tests.benchmarks.rows import grows, hold, show
from tests.benchmarks.timing import apart, print_cost, seconds
from tests.helpers.plain_fcer import METHODS, plain_evaluation

from fcer.evaluation import Results, evaluate_files
from fcer.maps.predicted_maps import PredictedMaps, write_maps

SIZE = 128
DAYS = 6


COUNTS = (300, 1000, 3000)


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions_2021.npz"
        write_maps(path, PredictedMaps.from_arrays(fake_maps(600), year=2021))
        compare_with_plain_way(path)
        growth(Path(folder) / "predictions_2020.h5")


def compare_with_plain_way(path: Path) -> None:
    """Both on the same file, ours thrice and with draws, and how far apart they are."""
    ours, drawn = seconds(
        lambda: evaluate_files([path], bootstrap=0, progress=None),
        lambda: evaluate_files([path], bootstrap=1000, progress=None),
        repeats=3,
    )
    results = evaluate_files([path], bootstrap=0, progress=None)
    start = time.perf_counter()
    with np.load(path) as store:
        expected = plain_evaluation({name: store[name] for name in store if name not in ("fire_id", "year")})
    plain = time.perf_counter() - start
    note = f"largest difference {largest_difference(results, expected):.1e}"
    show("whole FCER evaluation, 600 images of 128 px, 2 methods", ours, plain, 25, note, aim=40)
    hold("  with 1000 draws against without, 600 images", drawn / ours, 2.5, aim=2)


def growth(path: Path) -> None:
    """Time and memory of evaluations in processes of their own, without draws and with 1000."""
    plain, drawn = [], []
    for count in COUNTS:
        write_large(path, count)
        for points, bootstrap in ((plain, 0), (drawn, 1000)):
            taken, memory = apart("fcer_evaluation", f"measure({str(path)!r}, {bootstrap})")
            points.append((count, taken, memory))
    grows("evaluate", "maps", plain)
    grows("evaluate with 1000 draws", "maps", drawn, limit=1.2)
    hold(f"  with 1000 draws against without, {count} images", drawn[-1][1] / plain[-1][1], 2.5, aim=2)


def fake_maps(n_images: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Blobs of fire, two methods that know them more or less, and uncertainty that has something to it."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    arrays = {"y": np.zeros((n_images, SIZE, SIZE), np.uint8)}
    for name in METHODS:
        arrays |= {f"{name}_{kind}": np.zeros((n_images, SIZE, SIZE), np.float32) for kind in ("prob", "unc")}
    for i in range(n_images):
        inside = np.full((SIZE, SIZE), -np.inf)
        for _ in range(rng.integers(1, 4)):
            row, column = rng.uniform(20, SIZE - 20, 2)
            inside = np.maximum(inside, rng.lognormal(1.6, 0.5) - np.hypot(rows - row, columns - column))
        rough = ndimage.zoom(rng.standard_normal((2 + len(METHODS), 17, 17)), (1, SIZE / 17, SIZE / 17), order=1)
        arrays["y"][i] = inside + 2 * rough[0] > 0
        for name, wrong in zip(METHODS, rough[2:], strict=True):
            noise = rng.standard_normal((2, SIZE, SIZE))
            prob = 1 / (1 + np.exp(-(inside + rough[0] + 1.5 * wrong + 0.3 * noise[0]) / 1.5))
            arrays[f"{name}_prob"][i] = prob
            arrays[f"{name}_unc"][i] = np.clip(4 * prob * (1 - prob) * np.exp(0.4 * noise[1]) / 2, 0, 1)
    arrays["fire_id"] = np.array([f"fire_{i // DAYS}" for i in range(n_images)])
    return arrays


def write_large(path: Path, n_images: int) -> None:
    """A file of `n_images`, written in pieces: the same 300 over and over, with values moved a little."""
    piece = fake_maps(min(n_images, 300))
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as store:
        for name, array in piece.items():
            if name != "fire_id":
                store.create_dataset(name, (n_images, *array.shape[1:]), array.dtype)
        for start in range(0, n_images, 300):
            stop = min(start + 300, n_images)
            for name in store:
                block = piece[name][: stop - start]
                if block.dtype.kind == "f":
                    block = np.clip(block * rng.uniform(0.98, 1.02, (len(block), 1, 1)), 0, 1)
                store[name][start:stop] = block
        names = [f"fire_{i // DAYS}" for i in range(n_images)]
        store["fire_id"] = np.array(names, dtype=h5py.string_dtype())


def largest_difference(results: Results, expected: dict[str, np.ndarray]) -> float:
    """Over everything that both computed; ASD in kilometres, to be of the others' size."""
    segmentation, tests = results.segmentation.set_index("method"), results.tests.query("unit == 'image'")
    pairs = [(segmentation.loc[[*METHODS], "ap"], expected["ap"])]
    pairs.append((segmentation.loc[[*METHODS], "asd_m"] / 1000, expected["asd_m"] / 1000))
    for name in METHODS:
        ours = results.sweep.query("method == @name")[["auroc", "auprc", "brier", "nll"]]
        images = results.per_image.query("method == @name")[["auroc", "auprc"]]
        pairs += [(ours, expected[f"sweep {name}"]), (images, expected[f"images {name}"])]
    for metric in ("auroc", "auprc"):
        p = tests.query("scope == 'pooled' and metric == @metric")["p"]
        pairs.append((p, expected[f"p {metric}"]))
    return max(float(np.nanmax(np.abs(np.asarray(ours) - theirs))) for ours, theirs in pairs)


def measure(path: str, bootstrap: int) -> None:
    """Print what `apart` reads."""
    print_cost(lambda: evaluate_files([Path(path)], bootstrap=bootstrap, progress=None))

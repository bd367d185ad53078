"""Reading one training sample: only what is needed, against opening the file and reading everything."""

import tempfile
from pathlib import Path

import h5py
import numpy as np
from tests.benchmarks.rows import show
from tests.benchmarks.timing import seconds

from fcer.data.augmentation import angle_positions, draw_view, turn
from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.normalization import released
from fcer.data.samples import Samples, preprocess
from fcer.data.synthetic.fires import Recipe, synthesize

DAYS, CROP = 5, 128


def plainly(samples: Samples, index: int) -> tuple[np.ndarray, np.ndarray]:
    """The same sample as `samples[index]`, by way of all 23 channels of the whole image."""
    fire, first = samples.locate(index)
    with h5py.File(fire.path, "r") as file:
        days = file["data"][first : first + samples.days + 1]
    active = days[:, 22] > 0
    view = draw_view(np.random.default_rng((samples.seed, samples.epoch, index)), active[-1], active[:-1], CROP)
    rows, columns = slice(view.top, view.top + CROP), slice(view.left, view.left + CROP)
    raw = turn(days[:-1, :, rows, columns], view, angle_positions(range(23)))
    x = preprocess(raw, range(23), samples.features, samples.normalization)
    return x, turn(active[-1, rows, columns].astype(np.float32), view) > 0


def main() -> None:
    """Print one row; the files are in the operating system's cache for both ways."""
    with tempfile.TemporaryDirectory() as folder:
        synthesize(Recipe((2018,), 2, (300, 400), (12, 12), 0), Path(folder))
        samples = Samples(
            open_catalog(Path(folder)).fires,
            days=DAYS,
            features=feature_indices("vegetation"),
            normalization=released((2018, 2019)),
            crop=CROP,
            augment=True,
        )
        for k in range(len(samples)):
            x, y = plainly(samples, k)
            np.testing.assert_array_equal(samples[k].x, x)
            np.testing.assert_array_equal(samples[k].y, y)
        ours, theirs = seconds(
            lambda: [samples[k] for k in range(len(samples))],
            lambda: [plainly(samples, k) for k in range(len(samples))],
        )
        n = len(samples)
        show("one training sample, 5 days of 300-400 px, crop 128", ours / n, theirs / n, 5, "identical")

import pickle
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.data.catalog import open_catalog
from fcer.data.channels import ACTIVE_FIRE, CHANNELS, FEATURES, feature_indices
from fcer.data.fire import EVERYWHERE, Fire, channel_runs
from fcer.data.hdf5 import open_hdf5
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples, central_crop, preprocess
from fcer.errors import DataError
from golden_fires import fire_days, write_hdf5_like_released

VEGETATION = feature_indices("vegetation")
PLAIN = Normalization((0.0,) * 23, (1.0,) * 23, "nothing")


class PaperFire(Fire):
    """A fire that has days but no pixels, for what only counts."""

    def read(self, days, channels, rows=EVERYWHERE, columns=EVERYWHERE):
        raise AssertionError("nothing should be read")

    def files(self):
        return []


def paper_fire(year: int, name: str, days: int, missing: set[int] = frozenset()) -> PaperFire:
    kept = [date(year, 6, 1) + timedelta(days=k) for k in range(days + len(missing)) if k not in missing]
    return PaperFire(Path(f"{year}/{name}"), year, name, len(kept), 128, 128, tuple(kept))


def samples(fires, days=5, **options) -> Samples:
    return Samples(fires, days=days, features=VEGETATION, normalization=PLAIN, **options)


@given(
    st.lists(st.tuples(st.integers(2018, 2021), st.integers(1, 15), st.sets(st.integers(1, 14))), max_size=12),
    st.sampled_from([1, 5]),
    st.sampled_from([None, 5]),
)
def test_index_to_fire_and_day_is_a_bijection_over_all_years(drawn, days, leading):
    fires = [paper_fire(year, f"fire_{k}", n, gaps) for k, (year, n, gaps) in enumerate(drawn)]
    located = [
        samples(fires, days, leading=leading).locate(k) for k in range(len(samples(fires, days, leading=leading)))
    ]
    found = [(fire.name, day) for fire, day in located]
    need = max(days, leading or days)
    expected = [
        (fire.name, last - days)
        for fire in fires
        for last in range(need, fire.days)
        if (fire.dates[last] - fire.dates[last - need]).days == need
    ]
    assert found == expected
    assert len(set(found)) == len(found)


def test_a_year_is_never_skipped():
    fires = [paper_fire(year, f"fire_{year}", 7) for year in (2018, 2019, 2020)]
    years = [samples(fires).locate(k)[0].year for k in range(6)]
    assert years == [2018, 2018, 2019, 2019, 2020, 2020]


def test_an_index_outside_is_an_error():
    few = samples([paper_fire(2018, "fire", 7)])
    assert few.locate(-1) == few.locate(1)
    with pytest.raises(IndexError, match="sample 2 of 2"):
        few.locate(2)


@given(st.lists(st.integers(0, 22), unique=True, min_size=1).map(sorted))
def test_channel_runs_cover_each_channel_once(channels):
    runs = channel_runs(channels)
    assert [c for _, there in runs for c in range(there.start, there.stop)] == channels
    assert [k for here, _ in runs for k in range(here.start, here.stop)] == list(range(len(channels)))


@given(st.integers(32, 400), st.integers(1, 32))
def test_the_central_crop_is_central(size, crop):
    window = central_crop(size, crop)
    assert window.start >= 0 and window.stop <= size and window.stop - window.start == crop
    assert abs(window.start - (size - window.stop)) <= 1


def test_halves_are_rounded_to_even():
    assert [central_crop(size, 128).start for size in (129, 131, 133, 135)] == [0, 2, 2, 4]


def test_all_forty_channels_from_first_principles(rng: np.random.Generator):
    raw = rng.normal(size=(2, 23, 3, 4)).astype(np.float32)
    raw[:, 7] = 270
    raw[:, 16] = [[1, 2, 3, 4], [17, 16, 15, np.nan], [5, 5, 5, 5]]
    raw[:, 22] = 0
    raw[1, 22, 0, 0] = 9
    raw[0, 3, 2, 2] = np.nan
    mean, std = rng.normal(size=23), rng.uniform(1, 2, 23)
    mean[[7, 13, 16, 19]], std[[7, 13, 16, 19]] = 0, 1
    x = preprocess(raw, range(23), range(40), Normalization(tuple(mean), tuple(std), "made up"))
    assert x.shape == (2, len(FEATURES), 3, 4)
    np.testing.assert_allclose(x[:, 0], (raw[:, 0] - mean[0]) / std[0], rtol=1e-5)
    np.testing.assert_allclose(x[:, 7], -1, rtol=1e-6)
    assert x[0, 3, 2, 2] == 0
    np.testing.assert_array_equal(x[0, 16:33, 0, 0], np.eye(17)[0])
    np.testing.assert_array_equal(x[0, 16:33, 1, 0], np.eye(17)[16])
    np.testing.assert_array_equal(x[0, 16:33, 1, 3], np.eye(17)[-1], "unknown land cover is water, as in the release")
    np.testing.assert_allclose(x[:, 38], (raw[:, 22] - mean[22]) / std[22], rtol=1e-5)
    assert x[1, 39, 0, 0] == 1 and x[:, 39].sum() == 1


def test_land_cover_is_looked_up_as_the_published_loader_does(rng: np.random.Generator):
    """A row of the identity for each class less 1; missing values, 0 by then, take the last row."""
    raw = np.zeros((1, 23, 8, 9), np.float32)
    raw[0, 16] = rng.integers(0, 18, (8, 9))
    raw[0, 16, 0, 0] = np.nan
    raw[0, 16, 0, 1:4] = [0, 1, 17]
    x = preprocess(raw, range(23), range(16, 33), Normalization((0.0,) * 23, (1.0,) * 23, "none"))
    published = np.eye(17)[np.nan_to_num(raw[0, 16]).astype(int) - 1]
    np.testing.assert_array_equal(x[0], published.transpose(2, 0, 1))


@pytest.mark.parametrize("features", [VEGETATION, feature_indices("multi"), (39, 20, 3)])
def test_a_subset_equals_those_channels_of_all(features, small_fires: Path):
    fires = open_catalog(small_fires).fires
    options = {"days": 5, "normalization": PLAIN, "crop": 32}
    some, everything = Samples(fires, features=features, **options), Samples(fires, features=range(40), **options)
    np.testing.assert_array_equal(some[0].x, everything[0].x[:, list(features)])


def test_only_the_window_and_the_needed_channels_are_read(small_fires: Path, monkeypatch: pytest.MonkeyPatch):
    fire = open_catalog(small_fires).fires[0]
    asked = []
    read = type(fire).read

    def spy(self, days, channels, rows, columns):
        asked.append((list(channels), rows.stop - rows.start, columns.stop - columns.start))
        return read(self, days, channels, rows, columns)

    monkeypatch.setattr(type(fire), "read", spy)
    _ = samples([fire], crop=32)[0]
    assert asked == [([0, 1, 2, 3, 4, 22], 32, 32), ([ACTIVE_FIRE], 32, 32)]


def test_an_image_smaller_than_the_crop_is_an_error(small_fires: Path):
    fire = open_catalog(small_fires).fires[0]
    with pytest.raises(DataError, match=f"{fire.height} x {fire.width} px, smaller than the crop of 128"):
        samples([fire])


def test_whole_images_without_a_crop(small_fires: Path):
    fire = open_catalog(small_fires).fires[0]
    assert samples([fire], crop=None)[0].x.shape == (5, 7, fire.height, fire.width)


def test_views_depend_on_seed_epoch_and_index_alone(small_fires: Path):
    fires = open_catalog(small_fires).fires

    def x_of(seed: int, epoch: int, index: int = 1):
        drawn = samples(fires, crop=32, augment=True, seed=seed)
        drawn.set_epoch(epoch)
        return drawn[index].x

    np.testing.assert_array_equal(x_of(0, 0), x_of(0, 0))
    np.testing.assert_array_equal(x_of(0, 0, -1), x_of(0, 0, len(samples(fires, crop=32)) - 1))
    assert any(not np.array_equal(x_of(0, 0), x_of(0, epoch)) for epoch in (1, 2, 3))
    assert any(not np.array_equal(x_of(0, 0), x_of(seed, 0)) for seed in (1, 2, 3))


def sum_of(task: tuple[Samples, int]) -> float:
    return float(task[0][task[1]].x.sum())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("chunked", [False, True])
def test_open_files_are_safe_across_processes(tmp_path: Path, method: str, chunked: bool):
    path = tmp_path / "2018" / "fire_a.hdf5"
    write_hdf5_like_released(path, fire_days(8, 40, 41, 0.3))
    if chunked:
        values = fire_days(8, 40, 41, 0.3)
        with h5py.File(path, "w") as file:
            file.create_dataset("data", data=values, chunks=(1, 23, 40, 41), compression="gzip")
    few = samples([open_hdf5(path)], crop=32)
    here = [sum_of((few, k)) for k in range(len(few))]  # opens the file in this process first
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        there = list(pool.map(sum_of, [(few, k) for k in range(len(few))]))
    assert here == there


def test_chunked_compressed_double_precision_files_read_the_same(tmp_path: Path):
    values = fire_days(6, 40, 44, 1.0)
    write_hdf5_like_released(tmp_path / "2018" / "plain.hdf5", values)
    with h5py.File(tmp_path / "2018" / "packed.hdf5", "w") as file:
        file.create_dataset("data", data=values.astype(np.float64), chunks=True, compression="gzip")
    plain, packed = (samples([open_hdf5(tmp_path / "2018" / f"{n}.hdf5")], crop=32)[0] for n in ("plain", "packed"))
    np.testing.assert_array_equal(plain.x, packed.x)
    np.testing.assert_array_equal(plain.y, packed.y)


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path):
    path, other = tmp_path / "2018" / "fire_a.hdf5", tmp_path / "2018" / "fire_b.hdf5"
    for k, written in enumerate((path, other)):
        write_hdf5_like_released(written, np.full((6, 23, 4, 5), k, np.float32))
    assert open_hdf5(path).read(slice(0, 1), (0,)).max() == 0
    other.replace(path)
    assert open_hdf5(path).read(slice(0, 1), (0,)).min() == 1


def test_a_fire_can_be_pickled_while_it_is_open(small_fires: Path):
    fire = open_catalog(small_fires).fires[0]
    first = fire.read(slice(0, 1), range(len(CHANNELS)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fire)).read(slice(0, 1), range(len(CHANNELS))), first)

"""A fire's map: of its latest days, whole, and nothing where the input held nothing."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from fcer.data.channels import ACTIVE_FIRE
from fcer.data.hdf5 import open_hdf5
from fcer.deploy.fire_map import predict_fire
from fcer.errors import DataError
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student_files import LoadedStudent, load_student
from vegetation_student import write_vegetation_student


@pytest.fixture(scope="module", params=["utae_t5", "unet_t1"])
def student(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedStudent:
    return load_student(write_vegetation_student(tmp_path_factory.mktemp("student"), arch=request.param))


@pytest.fixture
def file(small_fires: Path, tmp_path: Path) -> Path:
    """A fire to be changed."""
    (tmp_path / "2018").mkdir()
    copied = tmp_path / "2018" / "fire_synthetic_20180001.hdf5"
    copied.write_bytes((small_fires / "2018" / copied.name).read_bytes())
    return copied


def change(file: Path, where: tuple, value: float) -> None:
    with h5py.File(file, "r+") as opened:
        opened["data"][where] = value


def test_it_is_what_the_student_says_of_the_latest_days(student: LoadedStudent, file: Path):
    fire = open_hdf5(file)
    days = student.student.backbone.days
    found = predict_fire(student, fire)
    expected = predict_days(student, fire.read(slice(fire.days - days, fire.days), range(23))[None])
    np.testing.assert_array_equal(found.probability, expected.probability_BHW[0].numpy())
    np.testing.assert_array_equal(found.uncertainty, expected.uncertainty_BHW[0].numpy())
    assert found.probability.shape == (fire.height, fire.width) and found.probability.dtype == np.float32
    np.testing.assert_array_equal(found.today, fire.read(slice(fire.days - 1, fire.days), (ACTIVE_FIRE,))[0, 0] > 0)
    assert found.dates == fire.dates[-days:] and (found.predicted - fire.dates[-1]).days == 1


def test_nothing_is_said_where_the_input_held_nothing(student: LoadedStudent, file: Path):
    """Missing in all channels that the student reads, on all days that it reads; one value is enough to predict."""
    days = student.student.backbone.days
    needed = [channel for channel in needed_channels(student) if channel != ACTIVE_FIRE]
    total = open_hdf5(file).days
    for channel in needed:
        change(file, (slice(total - days, total), channel, slice(0, 6), slice(0, 9)), np.nan)
    change(file, (total - 1, needed[-1], 2, 3), 1500.0)
    found = predict_fire(student, open_hdf5(file))
    expected = np.zeros(found.probability.shape, bool)
    expected[:6, :9] = True
    expected[2, 3] = False
    for values in (found.probability, found.uncertainty):
        np.testing.assert_array_equal(np.isnan(values), expected)
    assert not found.fire(0.0)[expected].any()


def test_a_fire_that_cannot_be_used_is_named(student: LoadedStudent, file: Path):
    change(file, (-1, 0, 4, 4), np.inf)
    with pytest.raises(DataError, match=r"fire_synthetic_20180001\.hdf5: input: it holds infinite values"):
        predict_fire(student, open_hdf5(file))
    change(file, (slice(None), slice(0, ACTIVE_FIRE)), np.nan)
    with pytest.raises(DataError, match=r"fire_synthetic_20180001\.hdf5: every value of its latest \d days is missing"):
        predict_fire(student, open_hdf5(file))


def test_without_dates_the_day_is_unknown(student: LoadedStudent, file: Path):
    with h5py.File(file, "r+") as opened:
        del opened["data"].attrs["img_dates"]
    found = predict_fire(student, open_hdf5(file))
    assert (found.dates, found.predicted) == (None, None)

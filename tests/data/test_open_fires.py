"""Fires wherever they lie: one alone, or some in a folder; and the latest days of each."""

import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import h5py
import numpy as np
import pytest

from fcer.data.catalog import open_catalog, open_fires
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import HDF5Fire, open_hdf5
from fcer.errors import DataError
from golden_fires import fire_days, write_hdf5_like_released


@pytest.fixture
def loose(small_fires: Path, tmp_path: Path) -> Path:
    """A fire in each form, in a folder that names no year."""
    root = tmp_path / "incidents"
    shutil.copytree(small_fires / "2018" / "fire_synthetic_20180000", root / "north")
    root.joinpath("south.hdf5").write_bytes((small_fires / "2019" / "fire_synthetic_20190001.hdf5").read_bytes())
    return root


def labels(path: Path) -> list[str]:
    return [fire.label for fire in open_fires(path).fires]


def test_a_fire_may_lie_anywhere(loose: Path, small_fires: Path):
    assert labels(loose) == ["2018/north", "2019/south.hdf5"]
    assert labels(loose / "north") == ["2018/north"] and labels(loose / "south.hdf5") == ["2019/south.hdf5"]
    moved, original = (
        open_fires(loose / "north").fires[0],
        open_fires(small_fires / "2018" / "fire_synthetic_20180000").fires[0],
    )
    np.testing.assert_array_equal(moved.read(slice(0, 2), range(23)), original.read(slice(0, 2), range(23)))
    assert (moved.dates, moved.place) == (original.dates, original.place)


def test_a_fire_is_called_as_its_folder_is(loose: Path, monkeypatch: pytest.MonkeyPatch):
    (loose / "north" / "previews").mkdir()
    for here, path in (("north", "."), ("north/previews", "..")):
        monkeypatch.chdir(loose / here)
        assert labels(Path(path)) == ["2018/north"]


def test_a_dataset_a_year_and_a_mixture_are_folders_of_fires(loose: Path, small_fires: Path):
    everything = [fire.label for fire in open_catalog(small_fires).fires]
    assert labels(small_fires) == everything
    assert labels(small_fires / "2019") == [label for label in everything if label.startswith("2019/")]
    shutil.copytree(small_fires / "2019", loose / "2019")
    assert labels(loose) == ["2018/north", "2019/south.hdf5", *labels(small_fires / "2019")]


def test_the_dataset_itself_still_insists_on_years(loose: Path):
    with pytest.raises(DataError, match="its parent folder does not name the year"):
        open_geotiff(loose / "north")
    with h5py.File(loose / "south.hdf5", "r+") as file:
        del file["data"].attrs["year"]
    with pytest.raises(DataError, match="neither its folder nor its attribute `year` tells the year"):
        open_hdf5(loose / "south.hdf5")
    assert open_hdf5(loose / "south.hdf5", any_folder=True).year == 2019, "of its first day"


def test_broken_ones_become_problems(loose: Path):
    (loose / "south.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (loose / "empty").mkdir()
    found = open_fires(loose)
    assert [fire.name for fire in found.fires] == ["north"]
    assert [problem.partition(":")[0] for problem in found.problems] == [
        str(loose / "empty"),
        str(loose / "south.hdf5"),
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nowhere", "nowhere: no such file or folder; give --input"),
        ("empty", "empty: no fire in it; give a fire_X.hdf5"),
        ("day.tif", "day.tif: is no HDF5 file; give --input"),
    ],
)
def test_where_there_is_none_it_is_said(name: str, sentence: str, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "day.tif").touch()
    with pytest.raises(DataError, match=sentence):
        open_fires(tmp_path / name)


def fire_of(tmp_path: Path, days: Sequence[int]) -> HDF5Fire:
    path = tmp_path / "2020" / "fire.hdf5"
    dates = [date(2020, 7, day).isoformat() for day in days]
    write_hdf5_like_released(path, fire_days(len(dates), 8, 8, 0.0), dates)
    return open_hdf5(path)


def test_the_latest_days(tmp_path: Path):
    assert fire_of(tmp_path, range(1, 9)).latest_days(5) == slice(3, 8)
    assert fire_of(tmp_path, range(1, 6)).latest_days(5) == slice(0, 5)
    assert fire_of(tmp_path, (1, 3, 4, 5, 6, 7)).latest_days(5) == slice(1, 6), "an earlier gap does no harm"


def test_too_few_days_and_a_missing_one_are_said(tmp_path: Path):
    with pytest.raises(DataError, match=r"fire\.hdf5: 4 days, but 5 are needed; add the days before them"):
        fire_of(tmp_path, range(1, 5)).latest_days(5)
    gap = r"fire\.hdf5: a day is missing between 2020-07-04 and 2020-07-06, among the latest 5; add it"
    with pytest.raises(DataError, match=gap):
        fire_of(tmp_path, (1, 2, 3, 4, 6, 7)).latest_days(5)

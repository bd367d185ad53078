import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from fcer.data import survey as survey_module
from fcer.data.catalog import open_catalog
from fcer.data.conversion import convert
from fcer.data.dataset import open_dataset
from fcer.data.normalization import computed
from fcer.data.survey import dataset_fingerprint, survey_fires
from fcer.errors import FcerWarning
from golden_fires import fire_days, write_hdf5_like_released


def fingerprint(root: Path, cache: Path) -> str:
    return dataset_fingerprint(survey_fires(open_catalog(root).fires, cache=cache, workers=1))


def test_both_forms_of_a_dataset_have_one_fingerprint(golden_hdf5: Path, golden_geotiff: Path, tmp_path: Path):
    assert fingerprint(golden_hdf5, tmp_path) == fingerprint(golden_geotiff, tmp_path)


def test_the_fingerprint_of_known_content_is_known(tmp_path: Path):
    """Pinned: the same on every machine and in every version, or caches and lineage would break silently."""
    values = np.arange(6 * 23 * 4 * 5, dtype=np.float32).reshape(6, 23, 4, 5)
    values[0, 0, 0, 0] = np.nan
    write_hdf5_like_released(tmp_path / "2018" / "fire_a.hdf5", values)
    assert fingerprint(tmp_path, tmp_path / "cache") == "41a52af6e3161416428c9e442cd678c8"


def test_a_copy_elsewhere_has_the_same_fingerprint_and_any_change_another(tmp_path: Path):
    path = tmp_path / "a" / "2018" / "fire_a.hdf5"
    write_hdf5_like_released(path, fire_days(6, 12, 13, 0.3))
    original = fingerprint(tmp_path / "a", tmp_path / "cache")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert fingerprint(tmp_path / "b", tmp_path / "cache") == original

    copy = tmp_path / "b" / "2018" / "fire_a.hdf5"
    times = (copy.stat().st_atime_ns, copy.stat().st_mtime_ns)
    with h5py.File(copy, "r+") as file:
        file["data"][3, 5, 7, 7] += 1
    os.utime(copy, ns=times)  # same size, same date: only the content tells
    with pytest.warns(FcerWarning, match=r"fire_a\.hdf5: its values are others than before.* damaged, or another file"):
        changed = fingerprint(tmp_path / "b", tmp_path / "cache")
    assert changed != original

    copy.rename(copy.with_name("fire_b.hdf5"))
    assert fingerprint(tmp_path / "b", tmp_path / "cache") not in (original, changed)


def test_a_known_fire_is_not_read_again(small_fires: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = fingerprint(small_fires, tmp_path)
    monkeypatch.setattr(survey_module, "survey_fire", lambda fire: pytest.fail(f"{fire.label} was read again"))
    assert fingerprint(small_fires, tmp_path) == first


def test_a_damaged_memory_is_made_anew(small_fires: Path, tmp_path: Path):
    first = fingerprint(small_fires, tmp_path)
    for memory in (tmp_path / "surveys").iterdir():
        memory.write_text('{"files": [')
    assert fingerprint(small_fires, tmp_path) == first


def test_a_flipped_bit_in_the_memory_is_found(small_fires: Path, tmp_path: Path):
    """A mean that is off by a bit would standardise everything wrongly, and nobody would see it."""
    fires = open_catalog(small_fires).fires
    first = survey_fires(fires, cache=tmp_path, workers=1)
    for memory in (tmp_path / "surveys").iterdir():
        content = memory.read_text()
        place = content.index('"mean": [') + len('"mean": [')
        memory.write_text(content[:place] + "1" + content[place:])
    assert survey_fires(fires, cache=tmp_path, workers=1) == first


def test_statistics_equal_numpy_s_over_everything(small_fires: Path, tmp_path: Path):
    fires = open_catalog(small_fires).fires
    found = computed(survey_fires(fires, cache=tmp_path, workers=1).values(), (2018, 2019))
    pixels = np.concatenate(
        [fire.read(slice(None), range(23)).swapaxes(0, 1).reshape(23, -1) for fire in fires], axis=1
    ).astype(np.float64)
    pixels[22, pixels[22] == 0] = np.nan  # no fire is no hour
    for channel in range(23):
        if channel in (7, 13, 16, 19):
            assert (found.mean[channel], found.std[channel]) == (0, 1)
        else:
            np.testing.assert_allclose(
                found.mean[channel], np.nanmean(pixels[channel]), rtol=1e-9, err_msg=str(channel)
            )
            np.testing.assert_allclose(found.std[channel], np.nanstd(pixels[channel]), rtol=1e-6, atol=1e-9)
    assert found.origin == "computed from 2018-2019"


def test_a_constant_or_empty_channel_stays_finite(tmp_path: Path):
    values = fire_days(6, 12, 13, 0.3)
    values[:, 5] = 7
    write_hdf5_like_released(tmp_path / "2018" / "fire_a.hdf5", values)
    surveys = survey_fires(open_catalog(tmp_path).fires, cache=tmp_path / "cache", workers=1)
    assert (computed(surveys.values(), [2018]).mean[5], computed(surveys.values(), [2018]).std[5]) == (7, 1)
    values[:, 5] = np.nan
    write_hdf5_like_released(tmp_path / "2018" / "fire_a.hdf5", values)
    surveys = survey_fires(open_catalog(tmp_path).fires, cache=tmp_path / "cache", workers=1)
    assert (computed(surveys.values(), [2018]).mean[5], computed(surveys.values(), [2018]).std[5]) == (0, 1)


def test_a_dataset_gives_fires_statistics_and_fingerprint_by_year(small_fires: Path, tmp_path: Path):
    dataset = open_dataset(small_fires, [2018, 2019], features=(0, 39), crop=32, cache=tmp_path, workers=2)
    assert len(dataset.fires([2018])) == 2 and len(dataset.fires([2018, 2019])) == 4
    assert dataset.fingerprint([2018]) != dataset.fingerprint([2019])
    assert dataset.normalization([2018]).mean != dataset.normalization([2019]).mean


def test_conversion_keeps_the_fingerprint(small_fires: Path, tmp_path: Path):
    geotiffs = tmp_path / "tif"
    for year in ("2018", "2019"):
        for folder in (small_fires / year).iterdir():
            if folder.is_dir():
                shutil.copytree(folder, geotiffs / year / folder.name)
    convert(geotiffs, tmp_path / "hdf5", workers=1)
    prints = {fingerprint(root, tmp_path / "cache") for root in (geotiffs, tmp_path / "hdf5", small_fires)}
    assert len(prints) == 1

"""Every broken fire gets one sentence that names the file and the remedy, and the rest stays usable."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import h5py
import numpy as np
import pytest

from fcer.data.catalog import open_catalog, warn_of
from fcer.data.channels import feature_indices
from fcer.data.dataset import open_dataset
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import open_hdf5
from fcer.errors import DataError, FcerWarning
from golden_fires import PLACE, fire_days, write_hdf5_like_released

VEGETATION = feature_indices("vegetation")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two years with one good fire each."""
    for year in (2018, 2019):
        write_hdf5_like_released(tmp_path / str(year) / "fire_good.hdf5", fire_days(7, 40, 44, 0.1))
    return tmp_path


def truncated(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(7, 40, 44, 0.2))
    with path.open("r+b") as file:
        file.truncate(100_000)
    return f"{path}: the HDF5 file is truncated or damaged (100000 bytes); copy or convert it again"


def empty_file(path: Path) -> str:
    path.touch()
    return f"{path}: the file is empty; copy or convert it again"


def no_hdf5(path: Path) -> str:
    path.write_text("<html>please log in to download</html>")
    return f"{path}: this is no HDF5 file; remove it or write it again with `fcer convert`"


def a_tiff(path: Path) -> str:
    path.write_bytes(b"II*\0" + bytes(100))
    return f"{path}: this is a TIFF file with another name; give the GeoTIFF folders to `fcer convert --source`"


def broken_link(path: Path) -> str:
    path.symlink_to("nowhere.hdf5")
    return f"{path}: no such file, or none to read; is it a broken link?"


def a_pipe(path: Path) -> str:
    os.mkfifo(path)
    return f"{path}: no such file, or none to read; is it a broken link?"


def more_declared_than_stored(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", (10**6, 23, 1000, 1000), "<f4", chunks=(1, 23, 100, 100))
    return f"{path}: its dataset `data` should have 92000000000000 bytes, but 0 are stored (found: data); write"


def channels_22(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(7, 40, 44, 0.2)[:, :22])
    return f"{path}: 22 channels, but WildfireSpreadTS has 23; convert it again from the GeoTIFFs, or remove it"


def no_data(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file["images"] = np.zeros(3)
    return f"{path}: its dataset `data` is not there (found: images); write it again with `fcer convert`"


def three_axes(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(7, 40, 44, 0.2)[0])
    return f"{path}: `data` is float32 (23, 40, 44), but should be numbers (days, 23, height, width)"


def dates_too_few(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(7, 40, 44, 0.2), dates=["2018-07-01", "2018-07-02"])
    return f"{path}: 7 days but 2 dates in `img_dates`; convert it again from the GeoTIFFs"


def dates_unordered(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(3, 40, 44, 0.2), dates=["2018-07-02", "2018-07-01", "2018-07-03"])
    return f"{path}: the dates in `img_dates` are not in order; convert it again from the GeoTIFFs"


def other_year(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(3, 40, 44, 0.2))
    with h5py.File(path, "r+") as file:
        file["data"].attrs["year"] = 2020
    return f"{path}: says that it is of 2020, but lies in the folder 2018; move it"


def empty_channel(path: Path) -> str:
    values = fire_days(7, 40, 44, 0.2)
    values[:, 3] = np.nan
    write_hdf5_like_released(path, values)
    return (
        f"{path}: NDVI (channel 3) holds no value on any day; "
        "convert the fire again, or choose --features without that channel"
    )


def small_image(path: Path) -> str:
    write_hdf5_like_released(path, fire_days(7, 40, 31, 0.2))
    return f"{path}: the image is 40 x 31 px, smaller than the crop of 32; choose a smaller --crop"


def a_folder(path: Path) -> str:
    path.mkdir()
    return f"{path}: this is a folder with a file's name; remove it"


def empty_dataset(path: Path) -> str:
    with h5py.File(path, "w") as file:
        file["data"] = h5py.Empty("f4")
    return f"{path}: its dataset `data` is empty (found: data); write it again with `fcer convert`"


def damaged_chunk(path: Path) -> str:
    """The header is fine; what it points to is not, which only reading can tell."""
    with h5py.File(path, "w") as file:
        values = fire_days(7, 40, 44, 0.2)
        dataset = file.create_dataset("data", data=values, chunks=(1, 23, 40, 44), compression="gzip")
        offset = dataset.id.get_chunk_info(3).byte_offset
    with path.open("r+b") as file:
        file.seek(offset + 500)
        file.write(bytes(2000))
    return f"{path}: the HDF5 file is truncated or damaged ({path.stat().st_size} bytes); copy or convert it again"


BREAKAGES = [
    a_folder,
    empty_dataset,
    a_pipe,
    more_declared_than_stored,
    damaged_chunk,
    truncated,
    empty_file,
    no_hdf5,
    a_tiff,
    broken_link,
    channels_22,
    no_data,
    three_axes,
    dates_too_few,
    dates_unordered,
    other_year,
    empty_channel,
    small_image,
]


@pytest.mark.parametrize("break_fire", BREAKAGES, ids=lambda f: f.__name__)
def test_a_broken_fire_is_named_and_left_out(root: Path, fcer_main, break_fire: Callable[[Path], str]):
    sentence = break_fire(root / "2018" / "fire_bad.hdf5")

    with pytest.warns(FcerWarning) as warned:
        dataset = open_dataset(root, [2018, 2019], features=VEGETATION, crop=32, cache=root / "cache", workers=1)
    assert [str(w.message) for w in warned] == [f"left out: {problem}" for problem in dataset.left_out]
    (problem,) = dataset.left_out
    assert problem.startswith(sentence)
    assert [fire.label for fire in dataset.fires([2018, 2019])] == ["2018/fire_good.hdf5", "2019/fire_good.hdf5"]

    code, out, _ = fcer_main("inspect", "--data", root, "--crop", "32")
    assert code == 0
    assert f"cannot be used (1):\n  {problem}\n" in out


@contextmanager
def as_nobody() -> Iterator[None]:
    """The superuser may read everything: be somebody else for a moment."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)


def test_no_permission():
    # pytest's own folders are closed to others, whose eyes this test needs
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "2018" / "fire_locked.hdf5"
        write_hdf5_like_released(path, fire_days(2, 8, 8, 0.2))
        path.chmod(0)
        with as_nobody(), pytest.raises(DataError) as error:
            open_hdf5(path)
    assert str(error.value) == f"{path}: no permission to read it; run chmod +r on it or ask its owner"


def test_an_unused_channel_may_be_empty(root: Path):
    empty_channel(root / "2018" / "fire_bad.hdf5")
    dataset = open_dataset(root, [2018], features=(0, 39), crop=32, cache=root / "cache", workers=1)
    assert len(dataset.fires([2018])) == 2


def test_a_missing_day_costs_only_the_samples_that_span_it(root: Path, fcer_main):
    path = root / "2018" / "fire_gap.hdf5"
    days = [f"2018-07-{d:02d}" for d in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11)]
    write_hdf5_like_released(path, fire_days(10, 40, 44, 0.2), dates=days)
    assert open_hdf5(path).first_days(5) == [3, 4]
    assert open_hdf5(path).first_days(1) == [0, 1, 3, 4, 5, 6, 7, 8]
    _, out, _ = fcer_main("inspect", "--data", root, "--crop", "32")
    assert (
        f"partly used (1):\n  {path}: days are missing between 2018-07-03 and 2018-07-05; "
        "3 of its samples (t=5) would span a gap and are left out\n"
    ) in out + "\n"


def test_a_fire_too_short_has_no_samples_and_a_note(root: Path, fcer_main):
    path = root / "2018" / "fire_short.hdf5"
    write_hdf5_like_released(path, fire_days(4, 40, 44, 0.2))
    assert open_hdf5(path).first_days(5) == []
    _, out, _ = fcer_main("inspect", "--data", root, "--crop", "32")
    assert f"{path}: 4 days are too short for a sample of 5 days and a label" in out


def test_an_empty_year_is_an_error_only_where_it_is_needed(root: Path, fcer_main):
    (root / "2020").mkdir()
    code, out, _ = fcer_main("inspect", "--data", root, "--crop", "32")
    assert code == 0
    assert f"{root / '2020'}: no usable fire" in out
    catalog = open_catalog(root)
    assert len(catalog.of([2018, 2019])) == 2
    with pytest.raises(DataError) as error:
        catalog.of([2019, 2020])
    assert str(error.value) == (
        f"{root / '2020'}: no usable fire of 2020; "
        "`fcer inspect --data` on the folder lists what is there and what is broken"
    )


def test_no_usable_fire_at_all_is_bad_input(tmp_path: Path, fcer_main):
    (tmp_path / "2018").mkdir()
    small_image(tmp_path / "2018" / "fire_a.hdf5")
    code, _, err = fcer_main("inspect", "--data", tmp_path, "--crop", "32")
    assert (code, err) == (2, f"fcer: {tmp_path}: not one fire in it can be used; the reasons are listed above\n")


def test_folders_that_are_no_dataset(tmp_path: Path, fcer_main):
    code, _, err = fcer_main("inspect", "--data", tmp_path / "nowhere")
    expected = f"fcer: {tmp_path / 'nowhere'}: no such folder; give --data a folder that holds YEAR/fire_X.hdf5\n"
    assert (code, err) == (2, expected)
    code, _, err = fcer_main("inspect", "--data", tmp_path)
    expected = f"fcer: {tmp_path}: no folder named by a year in it; WildfireSpreadTS has YEAR/fire_X.hdf5\n"
    assert (code, err) == (2, expected)


@pytest.fixture
def tif_fire(small_fires: Path, tmp_path: Path) -> Path:
    folder = next(p for p in sorted((small_fires / "2018").iterdir()) if p.is_dir())
    return Path(shutil.copytree(folder, tmp_path / "2018" / folder.name))


def sentence_of(folder: Path) -> str:
    with pytest.raises(DataError) as error:
        open_geotiff(folder).read(slice(None), range(23))
    return str(error.value)


def test_a_damaged_geotiff(tif_fire: Path):
    tif = sorted(tif_fire.glob("*.tif"))[2]
    tif.write_bytes(tif.read_bytes()[:2000])
    assert sentence_of(tif_fire) == f"{tif}: the GeoTIFF is truncated or damaged; download it again"
    tif.write_bytes(b"")
    assert sentence_of(tif_fire) == f"{tif}: the GeoTIFF is truncated or damaged; download it again"


def test_a_geotiff_with_other_bands_or_another_size(tif_fire: Path):
    import rasterio

    tif = sorted(tif_fire.glob("*.tif"))[0]
    with rasterio.open(tif) as image:
        profile, bands = image.profile, image.read()
    with rasterio.open(tif, "w", **(profile | {"count": 22})) as image:
        image.write(bands[:22])
    assert sentence_of(tif_fire) == (
        f"{tif}: 22 bands, but WildfireSpreadTS has 23; download it again, or remove the fire's folder"
    )
    with rasterio.open(tif, "w", **(profile | {"height": 7, "width": 9})) as image:
        image.write(bands[:, :7, :9])
    assert sentence_of(tif_fire).startswith(f"{tif_fire}: its days differ in size ([(7, 9), (")


def test_previews_and_second_copies_are_no_days(tif_fire: Path):
    before = open_geotiff(tif_fire)
    for name in ("preview.tif", f"{before.tifs[0].stem} (1).tif", "2018-13-45.tif"):
        shutil.copy(before.tifs[0], tif_fire / name)
    assert (open_geotiff(tif_fire).tifs, open_geotiff(tif_fire).dates) == (before.tifs, before.dates)


def test_days_at_different_places(tif_fire: Path):
    import rasterio

    with rasterio.open(sorted(tif_fire.glob("*.tif"))[1], "r+") as image:
        image.transform = rasterio.Affine(375, 0, 0, 0, -375, 0)
    assert sentence_of(tif_fire) == f"{tif_fire}: its days lie at different places on earth; download the fire again"


def test_a_coordinate_system_that_is_not_the_earth_s(tif_fire: Path):
    import rasterio

    local = 'LOCAL_CS["somewhere",UNIT["metre",1]]'
    for tif in tif_fire.glob("*.tif"):
        with rasterio.open(tif, "r+") as image:
            image.crs = rasterio.crs.CRS.from_wkt(local)
    assert open_geotiff(tif_fire).lnglat is None


def test_a_geotiff_damaged_inside_does_not_stop_inspect(tif_fire: Path, root: Path, fcer_main):
    tif = sorted(tif_fire.glob("*.tif"))[1]
    content = bytearray(tif.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 30_000] = bytes(30_000)
    tif.write_bytes(content)
    code, out, _ = fcer_main("inspect", "--data", root, "--crop", "32", "--workers", "1")
    assert code == 0
    assert f"{tif}: the GeoTIFF is truncated or damaged; download it again" in out
    assert "2019      1" in out


@pytest.mark.parametrize("name", ["year", "lnglat", "transform", "crs", "img_dates"])
@pytest.mark.parametrize("value", [[2018], "unknown", float("nan"), b"\xff\xfe", h5py.Empty("f4")], ids=repr)
def test_odd_attributes_end_in_a_fire_or_in_a_sentence(root: Path, name: str, value: object):
    path = root / "2018" / "fire_odd.hdf5"
    write_hdf5_like_released(path, fire_days(7, 40, 44, 0.2))
    with h5py.File(path, "r+") as file:
        file["data"].attrs["crs"], file["data"].attrs["transform"] = PLACE.crs, PLACE.transform
        file["data"].attrs[name] = value
    catalog = open_catalog(root)
    assert len(catalog.fires) + len(catalog.problems) == 3
    assert all(str(path) in problem for problem in catalog.problems)


def test_no_more_than_some_files_stay_open(root: Path):
    import psutil

    for k in range(200):
        write_hdf5_like_released(root / "2018" / f"fire_{k}.hdf5", fire_days(2, 4, 4, 0.2))
    before = psutil.Process().num_fds()
    for fire in open_catalog(root).fires:
        fire.read(slice(0, 1), (0,))
    assert psutil.Process().num_fds() - before <= 130


def test_a_folder_without_days(tmp_path: Path):
    (tmp_path / "2018" / "fire_a").mkdir(parents=True)
    folder = tmp_path / "2018" / "fire_a"
    assert sentence_of(folder) == f"{folder}: holds no DATE.tif; remove the folder or download the fire again"


def test_the_place_survives(tif_fire: Path):
    fire = open_geotiff(tif_fire)
    assert fire.place is not None and fire.place.crs.startswith("EPSG:326")
    assert fire.place.transform[0] == -fire.place.transform[4] == PLACE.transform[0] == 375


def test_a_broken_fire_is_warned_of_once(root: Path):
    """A study of all years opens its data again and again."""
    truncated(root / "2018" / "fire_bad.hdf5")

    def left_out() -> list[str]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            opened = open_dataset(root, [2018], features=VEGETATION, crop=32, cache=root / "cache", workers=1)
        assert len(opened.left_out) == 1, "it is counted each time"
        return [str(warning.message) for warning in warned]

    assert len(left_out()) == 1
    assert left_out() == []


def test_of_many_broken_fires_the_first_are_named_and_the_rest_counted():
    problems = [f"fire_{k}: broken, it is {uuid4()}" for k in range(25)]
    with pytest.warns(FcerWarning) as warned:
        warn_of(problems)
    assert [str(w.message) for w in warned] == [
        *(f"left out: {problem}" for problem in problems[:10]),
        "left out: 15 more fires, 25 in all; `fcer inspect --data` lists them",
    ]

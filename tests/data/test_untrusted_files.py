"""Files from anywhere: what they say of themselves is checked, and nothing beyond them is opened on their word."""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fcer.data.fire import Place
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import open_hdf5
from fcer.deploy.cog import write_cog
from fcer.errors import DataError

TRANSFORM = (375.0, 0.0, 400_000.0, 0.0, -375.0, 4_500_000.0)


@pytest.fixture
def hdf5(small_fires: Path, tmp_path: Path) -> Path:
    path = tmp_path / "2018" / "fire_A.hdf5"
    path.parent.mkdir()
    shutil.copy(small_fires / "2018" / "fire_synthetic_20180000.hdf5", path)
    return path


@pytest.fixture
def tifs(small_fires: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_fires / "2018" / "fire_synthetic_20180000", tmp_path / "2018" / "fire_A"))


def replaced(path: Path, kind: str) -> None:
    """The numbers lie elsewhere."""
    elsewhere = path.with_name("elsewhere.hdf5")
    shutil.copy(path, elsewhere)
    with h5py.File(path, "r+") as file:
        shape, attributes = file["data"].shape, dict(file["data"].attrs)
        del file["data"]
        if kind == "link":
            file["data"] = h5py.ExternalLink(elsewhere, "data")
            return
        if kind == "virtual":
            layout = h5py.VirtualLayout(shape, "<f4")
            layout[:] = h5py.VirtualSource(elsewhere, "data", shape)
            dataset = file.create_virtual_dataset("data", layout)
        else:
            dataset = file.create_dataset("data", shape, "<f4", external=str(elsewhere))
        dataset.attrs.update(attributes)


@pytest.mark.parametrize("kind", ["link", "virtual", "external"])
def test_numbers_of_another_file_are_not_read(hdf5: Path, kind: str):
    replaced(hdf5, kind)
    with pytest.raises(DataError, match=r"fire_A\.hdf5: .*; write it again with `fcer convert`$"):
        open_hdf5(hdf5)


def test_a_list_of_files_is_no_geotiff(tifs: Path):
    """GDAL opens a VRT by whatever name, and all that it names."""
    first, second, *_ = sorted(tifs.glob("*.tif"))
    from rasterio.shutil import copy

    copy(first, second.with_suffix(".vrt"), driver="VRT")
    second.with_suffix(".vrt").rename(second)
    with rasterio.open(second) as image:
        assert image.driver == "VRT", "else this tests nothing"
    with pytest.raises(DataError, match="the GeoTIFF is truncated or damaged"):
        open_geotiff(tifs)


def test_what_is_declared_missing_is_missing(tifs: Path):
    day = max(tifs.glob("*.tif"))
    with rasterio.open(day) as image:
        values, profile = image.read(), image.profile
    values[3, :5, :7] = values[22, :5, :7] = -9999
    with rasterio.open(day, "w", **{**profile, "nodata": -9999}) as image:
        image.write(values)
    fire = open_geotiff(tifs)
    read = fire.read(slice(fire.days - 1, fire.days), [3, 22])[0]
    assert np.isnan(read[0, :5, :7]).all() and not np.isnan(read[0, 5:, 7:]).all()
    assert (read[1, :5, :7] == 0).all(), "no active fire is a fact"


@pytest.mark.parametrize(
    ("crs", "transform", "place"),
    [
        ("EPSG:32610", TRANSFORM, Place("EPSG:32610", TRANSFORM)),
        (b"EPSG:32610", TRANSFORM, Place("EPSG:32610", TRANSFORM)),
        ("EPSG:32610", (*TRANSFORM, 0, 0, 1), Place("EPSG:32610", TRANSFORM)),
        ("http://127.0.0.1:1/crs", TRANSFORM, Place(None, TRANSFORM)),
        ("/somewhere/else.prj", TRANSFORM, Place(None, TRANSFORM)),
        (None, TRANSFORM, Place(None, TRANSFORM)),
        (None, (1, 0, 0, 0, 1, 0), None),
        ("EPSG:32610", (0, 0, 0, 0, 0, 0), None),
        ("EPSG:32610", (np.nan, 0, 0, 0, 1, 0), None),
    ],
)
def test_where_a_fire_lies(hdf5: Path, crs: str | bytes | None, transform: tuple[float, ...], place: Place | None):
    with h5py.File(hdf5, "r+") as file:
        del file["data"].attrs["crs"]
        if crs is not None:
            file["data"].attrs["crs"] = np.bytes_(crs) if isinstance(crs, bytes) else crs
        file["data"].attrs["transform"] = transform
    assert open_hdf5(hdf5).place == place


def test_a_transform_is_kept_without_a_coordinate_system(tmp_path: Path):
    write_cog(tmp_path / "a.tif", {"a": np.zeros((4, 5), np.float32)}, place=Place(None, TRANSFORM), tags={})
    with rasterio.open(tmp_path / "a.tif") as image:
        assert image.crs is None and tuple(image.transform)[:6] == TRANSFORM


def test_a_coordinate_system_that_no_geotiff_holds(tmp_path: Path):
    turned = rasterio.crs.CRS.from_string("+proj=ob_tran +o_proj=longlat +o_lat_p=40 +lon_0=10 +datum=WGS84").to_wkt()
    with pytest.raises(DataError, match=r"a\.tif: a GeoTIFF cannot hold the input's coordinate system; reproject"):
        write_cog(tmp_path / "a.tif", {"a": np.zeros((4, 5), np.float32)}, place=Place(turned, TRANSFORM), tags={})
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_to_an_hdf5_file_is_one_sentence(hdf5: Path, data: st.DataObject):
    sound = bytearray(hdf5.with_name("sound").read_bytes() if hdf5.with_name("sound").exists() else hdf5.read_bytes())
    hdf5.with_name("sound").write_bytes(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, 2047), st.integers(len(sound) - 3000, len(sound) - 1)))
        sound[place] = data.draw(st.integers(0, 255))
    hdf5.write_bytes(sound)
    try:
        open_hdf5(hdf5)
    except DataError as error:
        assert str(hdf5) in str(error) and "\n" not in str(error)


def test_what_gdal_quotes_of_a_damaged_file_is_not_printed(tifs: Path, monkeypatch: pytest.MonkeyPatch):
    """Its description of the bands, in bytes that are no text."""
    printed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    day = min(tifs.glob("*.tif"))
    content = day.read_bytes()
    place = content.index(b"<GDALMetadata>") + 20
    day.write_bytes(content[:place] + b"\xa4\xff" * 20 + content[place + 40 :])
    try:
        open_geotiff(tifs)
    except DataError as error:
        assert "\n" not in str(error)
    assert printed == []

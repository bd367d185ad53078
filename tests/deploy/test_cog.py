"""Maps as Cloud-Optimized GeoTIFFs, looked at byte by byte."""

from pathlib import Path

import numpy as np
import pytest
import rasterio

from fcer.data.fire import Place
from fcer.deploy.cog import write_cog
from fcer.errors import DataError
from golden_fires import PLACE
from tiff_structure import assert_cloud_optimized


@pytest.mark.parametrize(("shape", "overviews"), [((40, 56), []), ((512, 512), []), ((1100, 1300), [2, 4])])
def test_it_is_cloud_optimized_and_holds_what_was_written(
    shape: tuple[int, int], overviews: list[int], tmp_path: Path, rng: np.random.Generator
):
    first, second = rng.random((2, *shape), np.float32)
    first[:3, :5] = second[:3, :5] = np.nan
    path = tmp_path / "deep" / "map.tif"
    write_cog(path, {"one": first, "two": second}, place=PLACE, tags={"MODEL": "fcer-student 1"})
    images = assert_cloud_optimized(path)
    assert images[0].size == shape and len(images) == 1 + len(overviews)
    with rasterio.open(path) as image:
        structure = image.tags(ns="IMAGE_STRUCTURE")
        assert (structure["LAYOUT"], structure["COMPRESSION"]) == ("COG", "DEFLATE")
        assert image.overviews(1) == overviews and image.dtypes == ("float32", "float32")
        assert (image.crs.to_string(), tuple(image.transform)[:6]) == (PLACE.crs, PLACE.transform)
        assert image.descriptions == ("one", "two") and image.tags()["MODEL"] == "fcer-student 1"
        assert np.isnan(image.nodata)
        np.testing.assert_array_equal(image.read(), np.stack([first, second]))
    assert [each.name for each in path.parent.iterdir()] == ["map.tif"], "nothing is left beside it"


def test_a_plain_tiled_file_would_not_pass(tmp_path: Path):
    """The check of the structure can fail."""
    profile = {"driver": "GTiff", "count": 1, "height": 1100, "width": 1300, "dtype": "float32"}
    with rasterio.open(tmp_path / "plain.tif", "w", tiled=True, blockxsize=512, blockysize=512, **profile) as image:
        image.write(np.zeros((1, 1100, 1300), np.float32))
        image.build_overviews([2, 4])
    with pytest.raises(AssertionError):
        assert_cloud_optimized(tmp_path / "plain.tif")


def test_without_a_place_it_has_pixels_alone(tmp_path: Path):
    write_cog(tmp_path / "map.tif", {"one": np.ones((8, 9), np.float32)}, place=None, tags={})
    with rasterio.open(tmp_path / "map.tif") as image:
        assert image.crs is None and image.shape == (8, 9)


def test_an_unreadable_coordinate_system_is_said(tmp_path: Path):
    nonsense = Place("EPSG:nonsense", PLACE.transform)
    with pytest.raises(DataError, match=r"map\.tif: the input's coordinate system 'EPSG:nonsense' cannot be read"):
        write_cog(tmp_path / "map.tif", {"one": np.ones((8, 9), np.float32)}, place=nonsense, tags={})
    assert not list(tmp_path.iterdir())

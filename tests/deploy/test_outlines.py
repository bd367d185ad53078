"""Masks as GeoJSON: closed rings the right way round, on the right place on earth, of the right size."""

import json
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given
from hypothesis.extra import numpy as npst
from rasterio.features import geometry_mask
from rasterio.warp import transform_bounds, transform_geom

from fcer.data.fire import Place
from fcer.deploy.ground import ground_of
from fcer.deploy.outlines import outlines, write_geojson
from golden_fires import PLACE

SHAPE = (12, 15)
DEGREES = Place("EPSG:4326", (0.004, 0.0, -120.0, 0.0, -0.0034, 40.0))
UNC = np.linspace(0, 1, SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)


def features_of(mask: np.ndarray, place: Place = PLACE) -> list[dict]:
    ground = ground_of(place, *SHAPE)
    assert ground is not None
    return outlines(mask, place, ground, {"mean_uncertainty": UNC}, {"kind": "perimeter"})


def signed_area(ring: list[list[float]]) -> float:
    x, y = (np.array(ring) - ring[0]).T
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2)


@given(npst.arrays(bool, SHAPE))
def test_rings_are_closed_and_wound_as_the_standard_says(mask: np.ndarray):
    features = features_of(mask)
    west, south, east, north = transform_bounds(
        PLACE.crs, "EPSG:4326", *rasterio.transform.array_bounds(*SHAPE, rasterio.Affine(*PLACE.transform))
    )
    for feature in features:
        assert feature["geometry"]["type"] == "Polygon"
        for k, ring in enumerate(feature["geometry"]["coordinates"]):
            assert ring[0] == ring[-1] and len(ring) >= 5
            assert (signed_area(ring) > 0) == (k == 0)
            assert all(west - 1e-5 <= x <= east + 1e-5 and south - 1e-5 <= y <= north + 1e-5 for x, y in ring)


@given(npst.arrays(bool, SHAPE))
def test_drawn_again_they_are_the_mask(mask: np.ndarray):
    """What the polygons cover, on the image's own grid, is what they were made from."""
    again = np.zeros(SHAPE, bool)
    for feature in features_of(mask):
        geometry = transform_geom("EPSG:4326", PLACE.crs, feature["geometry"])
        inside = geometry_mask([geometry], SHAPE, rasterio.Affine(*PLACE.transform), invert=True)
        assert feature["properties"]["mean_uncertainty"] == pytest.approx(float(UNC[inside].mean()), abs=1e-4)
        assert feature["properties"]["area_km2"] == pytest.approx(inside.sum() * 0.375**2, rel=2e-3)
        assert not (again & inside).any()
        again |= inside
    np.testing.assert_array_equal(again, mask)


@pytest.mark.parametrize("place", [PLACE, DEGREES, Place("EPSG:3857", (500.0, 0.0, -13e6, 0.0, -500.0, 4.8e6))])
def test_the_size_of_a_pixel_does_not_depend_on_the_coordinate_system(place: Place):
    """Against an equal-area projection of the pixel itself."""
    ground = ground_of(place, *SHAPE)
    assert ground is not None
    row, column = SHAPE[0] / 2, SHAPE[1] / 2
    right, _, left, _, down, top = place.transform
    corners = [(left + right * (column + i), top + down * (row + j)) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    square = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    equal_area = transform_geom(place.crs, "EPSG:6933", square)["coordinates"][0]
    assert ground.area_m2 == pytest.approx(abs(signed_area(equal_area)), rel=1e-3)
    assert ground.area_m2 == pytest.approx(ground.width_m * ground.height_m, rel=1e-3)


def test_without_a_place_on_earth_there_is_no_size():
    drawing = Place('LOCAL_CS["drawing",UNIT["m",1]]', PLACE.transform)
    assert [ground_of(place, *SHAPE) for place in (None, drawing, Place("nonsense", PLACE.transform))] == [None] * 3


def test_the_file_is_a_feature_collection(tmp_path: Path):
    mask = np.zeros(SHAPE, bool)
    mask[2:7, 3:9] = True
    mask[4, 5] = False
    write_geojson(tmp_path / "a.geojson", features_of(mask))
    read = json.loads((tmp_path / "a.geojson").read_text())
    assert read.keys() == {"type", "features"} and read["type"] == "FeatureCollection"
    (feature,) = read["features"]
    assert feature.keys() == {"type", "geometry", "properties"}
    assert len(feature["geometry"]["coordinates"]) == 2, "a ring and a hole"
    assert feature["properties"]["kind"] == "perimeter"

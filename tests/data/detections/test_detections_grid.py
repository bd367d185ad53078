"""Grids on the ground: right in the far north and at the date line; a detection covers what its pixel covers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given
from hypothesis import strategies as st
from rasterio.warp import transform

from detection_cases import burning, frame_of, written
from fcer.core.regions import PIXEL_METRES
from fcer.data.detections import DetectionSettings, ingest
from fcer.data.detections.events import find_events
from fcer.data.detections.grid import Grid, grid_around, paint
from fcer.data.detections.layers import Layers, slope_and_aspect
from fcer.data.detections.read import read_file
from fcer.data.detections.table import Detections
from fcer.data.hdf5 import open_hdf5
from fcer.deploy.ground import ground_of

PLACES = {
    "Siberia": (70.5, 150.0),
    "far north": (81.5, -40.0),
    "date line, west of it": (66.0, 179.97),
    "date line, east of it": (66.0, -179.99),
    "Tasmania": (-42.0, 146.0),
    "equator": (0.01, 30.0),
    "zone border": (45.0, -120.0),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_grid_is_right_anywhere_on_earth(tmp_path: Path, place: str):
    lat, lng = PLACES[place]
    file = written(tmp_path, burning(lat, lng))
    done = ingest([file], tmp_path / "fires", DetectionSettings())
    (fire,) = (open_hdf5(fire.path) for fire in done.fires)
    assert done.in_fires > 400 and fire.place is not None
    ground = ground_of(fire.place, fire.height, fire.width)
    assert ground is not None
    assert ground.width_m == pytest.approx(375, rel=0.002) and ground.height_m == pytest.approx(375, rel=0.002)
    # Every pixel of fire has a detection of that day within half a pixel's diagonal and half a detection's
    read = read_file(file)
    rows, columns = np.nonzero(fire.read(slice(0, 1), (22,))[0, 0])
    a, _, c, _, e, f = fire.place.transform
    lngs, lats = transform(fire.place.crs, "EPSG:4326", a * (columns + 0.5) + c, e * (rows + 0.5) + f)
    today = read.days() == read.days().min()
    seen = read[today].unit_vectors()
    pixels = Detections(**{**vars(read[:1]), "latitude": np.array(lats), "longitude": np.array(lngs)}).unit_vectors()
    nearest = np.sqrt(np.square(pixels[:, None] - seen[None]).sum(-1).min(1)) * 6_371_000
    assert len(rows) > 30 and nearest.max() < 375


def test_beyond_84_degrees_is_refused(tmp_path: Path, sentence: Callable[..., str]):
    said = sentence(written(tmp_path, burning(85.0, 20.0)))
    assert "lies beyond 84 N or 80 S, where there is no UTM zone; leave it out with --bbox" in said


def detections_at(tmp_path: Path, **columns: object) -> Detections:
    return read_file(written(tmp_path, frame_of(**columns)))


GRID = Grid(32611, 300_000.0, 4_500_000.0, 128, 128)


def at_metres(
    folder: Path, x: np.ndarray, y: np.ndarray, scan: np.ndarray | float, track: np.ndarray | float
) -> Detections:
    lng, lat = transform("EPSG:32611", "EPSG:4326", np.ravel(x), np.ravel(y))
    return detections_at(folder, latitude=np.array(lat), longitude=np.array(lng), scan=scan, track=track)


@given(st.floats(10, 100), st.floats(10, 100), st.floats(0.32, 0.8), st.floats(0.36, 0.78))
def test_a_detection_covers_the_cells_in_its_pixel_and_the_nearest(
    tmp_path_factory: pytest.TempPathFactory, row: float, column: float, scan: float, track: float
):
    x, y = GRID.left + column * PIXEL_METRES, GRID.top - row * PIXEL_METRES
    seen = at_metres(tmp_path_factory.mktemp("one"), np.array([x]), np.array([y]), round(scan, 2), round(track, 2))
    painted = paint(GRID, seen, np.zeros(1, np.int64), 1)[0] > 0
    (row,), (column,) = GRID.pixels(seen)
    rows, columns = np.indices(painted.shape) + 0.5
    wide, high = seen.scan[0] * 500 / PIXEL_METRES, seen.track[0] * 500 / PIXEL_METRES
    nearest = (np.floor(rows) == np.floor(row)) & (np.floor(columns) == np.floor(column))
    across = (np.abs(columns - column) <= wide) | (np.floor(columns) == np.floor(column))
    down = (np.abs(rows - row) <= high) | (np.floor(rows) == np.floor(row))
    np.testing.assert_array_equal(painted, across & down)
    assert painted[nearest].all() and 1 <= painted.sum() <= 9


def test_neighbouring_pixels_off_nadir_leave_no_hole(tmp_path: Path):
    """Where pixels are 0.8 km wide, the nearest cell alone would leave three of four cells without fire."""
    x, y = np.meshgrid(np.arange(20) * 800.0 + 310_000, 4_490_000 - np.arange(20) * 780.0)
    seen = at_metres(tmp_path, x, y, 0.8, 0.78)
    painted = paint(GRID, seen, np.zeros(len(seen), np.int64), 1)[0] > 0
    rows, columns = np.nonzero(painted)
    assert painted[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].all()
    assert painted.sum() * PIXEL_METRES**2 == pytest.approx(len(seen) * 800 * 780, rel=0.06)


def test_events_are_the_same_however_detections_are_ordered(tmp_path: Path):
    table = read_file(written(tmp_path, burning(days=4)))
    far = read_file(written(tmp_path, burning(40.5, -119.0, seed=4, days=4)))
    both = Detections(*(np.concatenate([a, b]) for a, b in zip(vars(table).values(), vars(far).values(), strict=True)))
    events = find_events(both, both.days(), near_km=5, near_days=3)
    shuffled = np.random.default_rng(0).permutation(len(both))
    again = find_events(both[shuffled], both.days()[shuffled], near_km=5, near_days=3)
    pairs = set(zip(events[shuffled].tolist(), again.tolist(), strict=True))
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert len(set(events[: len(table)]) & set(events[len(table) :]) - {-1}) == 0


def raster(path: Path, values: np.ndarray, form: str = "GTiff", **profile: object) -> Path:
    place = {"crs": "EPSG:4326", "transform": rasterio.transform.from_bounds(-121, 39, -119, 41, *values.shape[::-1])}
    shape = {"height": values.shape[0], "width": values.shape[1], "count": 1, "dtype": "float32"}
    with rasterio.open(path, "w", driver=form, **{**shape, **place, **profile}) as image:
        image.write(values.astype(np.float32), 1)
    return path


def test_layers_are_warped_and_slope_and_aspect_follow_elevation(tmp_path: Path):
    """Ground that falls to the south by one in ten; wind of one day only."""
    height = np.linspace(22_240, 0, 400)[:, None] * np.ones(400)
    raster(tmp_path / "dem.tif", height)
    raster(tmp_path / "wind_2020-08-02.bil", np.full((50, 50), 7.0), "EHdr")
    cover = np.where(np.arange(400) < 200, 5, 10) * np.ones((400, 1))
    raster(tmp_path / "cover.tif", cover)
    layers = [
        f"elevation={tmp_path}/dem.tif",
        f"wind_speed={tmp_path}/wind_{{date}}.bil",
        f"16={tmp_path}/cover.tif",
    ]
    done = ingest([written(tmp_path, burning())], tmp_path / "fires", DetectionSettings(), layers)
    (fire,) = (open_hdf5(fire.path) for fire in done.fires)
    days = fire.read(slice(None), range(23))
    inside = np.s_[:, 20:-20, 20:-20]
    assert np.abs(days[:, 12][inside] - np.degrees(np.arctan(0.1))).max() < 0.2
    assert np.abs(days[:, 13][inside] - 180).max() < 3
    assert set(np.unique(days[:, 16])) == {5, 10}
    assert np.isnan(days[0, 6]).all() and (days[1, 6] == 7).all()
    assert np.isnan(days[:, 0]).all()


@pytest.mark.parametrize("towards", [0, 45, 90, 200, 300])
def test_aspect_is_where_the_slope_faces(towards: float):
    rows, columns = np.indices((9, 9)) * PIXEL_METRES
    down = np.array([-np.cos(np.radians(towards)), np.sin(np.radians(towards))])
    slope, aspect = slope_and_aspect((-0.2 * (rows * down[0] + columns * down[1])).astype(np.float32))
    np.testing.assert_allclose(slope, np.degrees(np.arctan(0.2)), rtol=1e-3)
    np.testing.assert_allclose(aspect, towards, atol=0.1)


def test_a_raster_that_is_none_gets_a_sentence(tmp_path: Path, sentence: Callable[..., str]):
    (tmp_path / "dem.tif").write_text("no raster")
    file = written(tmp_path, burning())
    assert "dem.tif: cannot be read" in sentence(file, "--layer", f"elevation={tmp_path}/dem.tif")
    raster(tmp_path / "dem.tif", np.zeros((4, 4)), crs=None)
    said = sentence(file, "--layer", f"elevation={tmp_path}/dem.tif", "--out", str(tmp_path / "b"))
    assert "does not say where on earth it lies; give --layer a raster of one band" in said
    raster(tmp_path / "dem.tif", np.zeros((4, 4)), transform=rasterio.Affine(0, 0, 0, 0, 0, 0))
    said = sentence(file, "--layer", f"elevation={tmp_path}/dem.tif", "--out", str(tmp_path / "c"))
    assert "dem.tif: cannot be read (Unable to compute a transformation" in said
    assert Layers(()).channels == ()


def test_a_raster_that_lists_other_files_is_not_read(tmp_path: Path, sentence: Callable[..., str]):
    other = raster(tmp_path / "other.tif", np.zeros((50, 50)))
    band = f"<SimpleSource><SourceFilename>{other}</SourceFilename><SourceBand>1</SourceBand></SimpleSource>"
    (tmp_path / "dem.tif").write_text(
        "<VRTDataset rasterXSize='50' rasterYSize='50'><SRS>EPSG:4326</SRS><GeoTransform>-121, 0.04, 0, 41, 0, -0.04"
        f"</GeoTransform><VRTRasterBand dataType='Float32' band='1'>{band}</VRTRasterBand></VRTDataset>"
    )
    with rasterio.open(tmp_path / "dem.tif") as followed:
        assert followed.driver == "VRT", "GDAL itself would read it"
    said = sentence(written(tmp_path, burning()), "--layer", f"elevation={tmp_path}/dem.tif")
    assert "dem.tif: cannot be read" in said


def test_an_event_wider_than_a_zone_is_refused(tmp_path: Path):
    table = detections_at(tmp_path, latitude=np.linspace(40, 47, 50))
    with pytest.raises(Exception, match=r"spans 7.. km, which no grid of one UTM zone holds"):
        grid_around(table, margin=16, min_side=128)

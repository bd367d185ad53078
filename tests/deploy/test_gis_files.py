"""Files for a GIS, opened with what a GIS opens them with: rasterio, pyogrio, gdalinfo, ogrinfo, QGIS."""

import json
import os
import shutil
import subprocess
from datetime import date, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import rasterio
from rasterio.warp import transform

from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.data.fire import Place
from fcer.deploy.assets import assets_at_risk, read_assets, write_rows
from fcer.deploy.calibrated import CalibratedMap, GuaranteedZone, contours
from fcer.deploy.cog import NO_DATA, write_cog
from fcer.deploy.fire_map import FireMap
from fcer.deploy.gis_files import Forecast, write_gis_files, write_gis_of_all
from fcer.deploy.ground import ground_of
from fcer.deploy.mosaic import write_mosaic
from fcer.deploy.outlines import outlines
from fcer.deploy.stac import FORECAST
from fcer.errors import DataError
from golden_fires import PLACE
from tiff_structure import assert_cloud_optimized

pyogrio = pytest.importorskip("pyogrio", reason="pyogrio, of the extra gis, is not installed")
pystac = pytest.importorskip("pystac", reason="pystac, of the extra gis, is not installed")

SHAPE = (30, 40)
DAYS = tuple(date(2021, 8, 8) + timedelta(days=k) for k in range(5))
OTHER_ZONE = Place("EPSG:32610", (375.0, 0.0, 250_000.0, 0.0, -375.0, 4_100_000.0))


def forecast_of(path: Path, place: Place | None = PLACE, *, synthetic: bool = False) -> Forecast:
    """A round fire with a hole in what is known, its GeoTIFF written."""
    rows, columns = np.indices(SHAPE)
    probability = np.exp(-((rows - 12) ** 2 + (columns - 20) ** 2) / 60).astype(np.float32)
    probability[:3, :5] = np.nan
    rules = [ZoneRule(ZoneFamily("threshold"), level, miss, miss, 9, 1, 40.0, 30.0) for miss, level in ZONES.items()]
    zones = tuple(GuaranteedZone(rule, probability >= rule.level, 0.1, 40.0, 0.0, "words of it") for rule in rules)
    predicted = FireMap(probability, probability / 2, probability > 0.8, DAYS)
    about = {
        "fire": "fire_1",
        **({"synthetic": "yes: this fire never burnt"} if synthetic else {}),
        **{"created": "2021-08-12T20:15:00Z", "predicted_date": "2021-08-13", "input_dates": "2021-08-12"},
        **{"threshold": 0.5, "calibration": "none", "model_name": "fcer-student", "fcer_version": "0"},
    }
    features = []
    if place is not None:
        ground = ground_of(place, *SHAPE)
        means = {"mean_probability": probability}
        parts = [(probability > 0.5, {"kind": "perimeter"})]
        parts += [(zone.mask, {"kind": "zone", **zone.properties}) for zone in zones]
        parts += [(m, {"kind": "contour", "probability_at_least": p}) for p, m in contours(probability).items()]
        features = [one for mask, kind in parts for one in outlines(mask, place, ground, means, {**kind, **about})]
    tags = {key.upper(): str(value) for key, value in about.items()}
    write_cog(path, {"fire probability": probability}, place=place, tags=tags)
    calibrated = CalibratedMap(probability, zones)
    return Forecast(path, place, predicted, calibrated, 0.5, features, about, ["fire probability"])


ZONES = {0.05: 0.02, 0.2: 0.2}
"""Levels by miss: the larger zone first."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Forecast:
    forecast = forecast_of(tmp_path_factory.mktemp("gis") / "fire_1.tif")
    write_gis_files(forecast)
    return forecast


def test_what_is_there(written: Forecast):
    names = {file.name for file in written.path.parent.iterdir()}
    beside = {f"fire_1{suffix}" for suffix in (".tif", ".qml", ".gpkg", ".kml", ".stac.json")}
    assert names == beside | {"fire_1_fire.tiff", "fire_1_fire.qml"}


def test_the_mask_is_of_bytes(written: Forecast):
    mask = written.path.with_name("fire_1_fire.tiff")
    assert_cloud_optimized(mask)
    with rasterio.open(mask) as image:
        values = image.read(1)
        assert (image.dtypes, image.nodata) == (("uint8",), NO_DATA)
        assert image.tags()["TIFFTAG_DATETIME"] == "2021:08:12 20:15:00"
    probability = written.calibrated.probability
    np.testing.assert_array_equal(values == 1, probability > 0.5)
    np.testing.assert_array_equal(values == NO_DATA, np.isnan(probability))


def test_layers_of_the_geopackage(written: Forecast):
    file = written.path.with_suffix(".gpkg")
    assert dict(pyogrio.list_layers(file)) == dict.fromkeys(("perimeter", "zones", "contours"), "MultiPolygon")
    count = {"perimeter": 1, "zones": 2, "contours": 5}
    for layer, expected in count.items():
        meta, _, geometry, values = pyogrio.raw.read(file, layer=layer)
        about = dict(zip(meta["fields"], values, strict=True))
        assert (meta["crs"], len(geometry)) == ("EPSG:4326", expected)
        assert set(about["poly_IncidentName"]) == {"fire_1"} and set(about["poly_MapMethod"]) == {"Modeled"}
        assert about["poly_CreateDate"].dtype.kind == about["poly_PolygonDateTime"].dtype.kind == "M"
        np.testing.assert_allclose(about["poly_GISAcres"], 247.105 * about["AreaKm2"], rtol=1e-3)
    inner, outer = (written.calibrated.zones[k].mask.sum() * 0.375**2 for k in (1, 0))
    meta, _, _, values = pyogrio.raw.read(file, layer="zones")
    about = dict(zip(meta["fields"], values, strict=True))
    areas = dict(zip(about["ExpectedMiss"], about["AreaKm2"], strict=True))
    assert areas == pytest.approx({0.05: outer, 0.2: inner}, rel=2e-3)
    bounds = pyogrio.read_info(file, layer="zones")["total_bounds"]
    assert bounds[0] > -180 and bounds[3] < 90


@pytest.mark.skipif(shutil.which("ogrinfo") is None, reason="GDAL's programs are not installed")
def test_the_programs_of_gdal_open_them(written: Forecast):
    def said(*call: str) -> dict:
        return json.loads(subprocess.run([*call], capture_output=True, text=True, check=True).stdout)

    layers = subprocess.run(
        ["ogrinfo", "-so", "-al", str(written.path.with_suffix(".gpkg"))], capture_output=True, text=True, check=True
    )
    assert all(f"Layer name: {name}" in layers.stdout for name in ("perimeter", "zones", "contours"))
    assert layers.stderr == "", "older programs open it without a warning, too"
    placemarks = subprocess.run(
        ["ogrinfo", "-so", "-al", str(written.path.with_suffix(".kml"))], capture_output=True, text=True, check=True
    ).stdout
    assert "Layer name: zones" in placemarks and "Feature Count: 2" in placemarks
    mask = said("gdalinfo", "-json", str(written.path.with_name("fire_1_fire.tiff")))
    assert mask["bands"][0]["type"] == "Byte" and mask["metadata"][""]["FIRE"] == "fire_1"


def test_kml_says_when_and_what(written: Forecast):
    root = ET.parse(written.path.with_suffix(".kml")).getroot()
    space = {"k": "http://www.opengis.net/kml/2.2"}
    folders = {folder.findtext("k:name", namespaces=space): folder for folder in root.iterfind(".//k:Folder", space)}
    assert list(folders) == ["perimeter", "zones", "contours"]
    assert {when.text for when in root.iterfind(".//k:when", space)} == {"2021-08-13"}
    zone = folders["zones"].find("k:Placemark", space)
    assert zone.findtext("k:description", namespaces=space) == "words of it"
    ring = zone.findtext(".//k:coordinates", namespaces=space).split()
    assert ring[0] == ring[-1] and len(ring) > 4


def wrong_with(item: dict) -> list[str]:
    """By the schemas of STAC itself, which come with pystac; those of extensions are on the network alone."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, which validates STAC items, is not installed")
    from pystac.validation.local_validator import get_local_schema_cache
    from referencing import Registry, Resource

    schemas = get_local_schema_cache()
    known = Registry().with_resources([(uri, Resource.from_contents(schema)) for uri, schema in schemas.items()])
    schema = next(schema for uri, schema in schemas.items() if uri.endswith("/item.json"))
    return [error.message for error in jsonschema.Draft7Validator(schema, registry=known).iter_errors(item)]


def test_the_stac_item_is_valid_and_says_what_is_forecast(written: Forecast):
    file = written.path.with_suffix(".stac.json")
    item = pystac.Item.from_file(str(file))
    core = item.to_dict()
    assert wrong_with(core) == []
    assert wrong_with({**core, "bbox": "everywhere"}), "what is wrong would be found"
    about = core["properties"]
    assert FORECAST in core["stac_extensions"]
    assert about["datetime"] == about["start_datetime"] == "2021-08-13T00:00:00Z"
    assert about["forecast:reference_datetime"] == "2021-08-12T00:00:00Z"
    assert (about["forecast:horizon"], about["forecast:duration"]) == ("P1D", "P1D")
    assert (about["proj:code"], about["proj:shape"]) == (PLACE.crs, list(SHAPE))
    for asset in core["assets"].values():
        assert (file.parent / asset["href"]).exists()
    with rasterio.open(written.path) as image:
        west, south, east, north = rasterio.warp.transform_bounds(image.crs, "EPSG:4326", *image.bounds)
    assert core["bbox"] == pytest.approx([west, south, east, north], abs=1e-5)


def test_styles_are_well_formed(written: Forecast):
    for name, kind in (("fire_1.qml", "singlebandpseudocolor"), ("fire_1_fire.qml", "paletted")):
        root = ET.parse(written.path.with_name(name)).getroot()
        assert root.tag == "qgis" and root.find("pipe/rasterrenderer").get("type") == kind
    values = [float(item.get("value")) for item in ET.parse(written.path.with_suffix(".qml")).iter("item")]
    assert values == sorted(values) and (values[0], values[-1]) == (0, 1)


QGIS = """
import sys
from qgis.core import QgsApplication, QgsRasterLayer, QgsVectorLayer
application = QgsApplication([], False)
application.initQgis()
for path in sys.argv[1:]:
    layer = QgsVectorLayer(path, "a", "ogr") if path.endswith(".gpkg") else QgsRasterLayer(path, "a")
    print(layer.isValid(), layer.dataProvider().subLayerCount() or layer.renderer().type(), flush=True)
    del layer
application.exitQgis()
"""
"""Run by the system's Python: Debian's QGIS is installed for that one. QGIS takes a style up by its file's name."""


@pytest.fixture(scope="module")
def qgis_python() -> str:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None or subprocess.run([python, "-c", "import qgis.core"], capture_output=True).returncode:
        pytest.skip("QGIS is not installed (Debian: python3-qgis)")
    return python


def test_qgis_opens_them_in_their_styles(qgis_python: str, written: Forecast):
    names = (written.path, written.path.with_name("fire_1_fire.tiff"), written.path.with_suffix(".gpkg"))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [qgis_python, "-c", QGIS, *map(str, names)],
        env={**kept, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["True singlebandpseudocolor", "True paletted", "True 3"], done.stderr


def test_without_a_place_there_are_mask_and_styles(tmp_path: Path):
    write_gis_files(forecast_of(tmp_path / "a.tif", None))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.qml", "a.tif", "a_fire.qml", "a_fire.tiff"]


def test_synthetic_is_said_everywhere(tmp_path: Path):
    forecast = forecast_of(tmp_path / "a.tif", synthetic=True)
    write_gis_files(forecast)
    item = json.loads((tmp_path / "a.stac.json").read_text())
    assert item["id"].startswith("synthetic-") and item["properties"]["title"].startswith("SYNTHETIC ")
    assert "SYNTHETIC fire_1: perimeter" in (tmp_path / "a.kml").read_text()
    meta, _, _, values = pyogrio.raw.read(tmp_path / "a.gpkg", layer="perimeter")
    about = dict(zip(meta["fields"], values, strict=True))
    assert about["poly_FeatureCategory"][0].startswith("SYNTHETIC ") and about["Synthetic"][0] == 1
    with rasterio.open(tmp_path / "a_fire.tiff") as image:
        assert image.tags()["SYNTHETIC"].startswith("yes")


def test_a_mosaic_of_maps_in_several_coordinate_systems(tmp_path: Path):
    forecasts = [forecast_of(tmp_path / f"{name}.tif", place) for name, place in (("a", PLACE), ("b", OTHER_ZONE))]
    write_gis_of_all(
        tmp_path, [one for forecast in forecasts for one in forecast.features], [f.path for f in forecasts]
    )
    moved = shutil.move(tmp_path, tmp_path.with_name("moved"))
    with rasterio.open(Path(moved) / "mosaic.vrt") as mosaic:
        assert mosaic.crs.to_epsg() == 4326 and mosaic.dtypes == ("float32",) and np.isnan(mosaic.nodata)
        for forecast in forecasts:
            right, _, left, _, down, top = forecast.place.transform
            lng, lat = transform(forecast.place.crs, "EPSG:4326", [left + 20.5 * right], [top + 12.5 * down])
            row, column = mosaic.index(lng[0], lat[0])
            near = mosaic.read(1, window=((row - 2, row + 3), (column - 2, column + 3)))
            assert np.nanmax(near) == pytest.approx(1.0, abs=0.02), "the middle of the fire is where it was"
        assert np.isnan(mosaic.read(1, window=((0, 1), (0, 1)))).all()
    layers = pyogrio.raw.read(Path(moved) / "all_fires.gpkg", layer="perimeter")
    assert len(layers[2]) == 2


def test_of_one_map_the_mosaic_is_that_map(tmp_path: Path):
    forecast = forecast_of(tmp_path / "a.tif", Place("EPSG:4326", (0.00375, 0, -120.0, 0, -0.00375, 40.2)))
    write_mosaic(tmp_path / "all.vrt", [forecast.path])
    with rasterio.open(tmp_path / "all.vrt") as mosaic, rasterio.open(forecast.path) as image:
        box = image.bounds
        window = mosaic.window(*box).round_offsets().round_lengths()
        np.testing.assert_array_equal(mosaic.read(1, window=window), image.read(1))


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A house in the fire, one in the outer zone, one off the map, and a road through all of it, in metres."""
    right, _, left, _, down, top = PLACE.transform

    def at(column: int, row: int) -> list[float]:
        return [left + right * (column + 0.5), top + down * (row + 0.5)]

    shapes = {
        "house": ("Point", at(20, 12)),
        "=barn": ("Point", at(20 + 12, 12)),
        "far": ("Point", at(400, 12)),
        "road": ("LineString", [at(0, 12), at(39, 12)]),
    }
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": kind, "coordinates": where}}
        for name, (kind, where) in shapes.items()
    ]
    code = PLACE.crs.split(":")[1]
    crs = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{code}"}}
    text = json.dumps({"type": "FeatureCollection", "crs": crs, "features": features})
    (tmp_path / "assets.geojson").write_text(text)
    return tmp_path / "assets.geojson"


def test_assets_lie_in_their_zones(layer: Path, written: Forecast, tmp_path: Path):
    rows = assets_at_risk(read_assets(layer), PLACE, written.predicted, written.calibrated)
    found = {row["asset_name"]: row for row in rows}
    assert list(found) == ["house", "road", "=barn"], "by probability; what is off the map is not listed"
    probability = written.calibrated.probability
    house, barn, road = found["house"], found["=barn"], found["road"]
    assert (house["zone"], house["zone_0.05"], house["burning_today"]) == ("0.2", 1, 1)
    assert house["probability_max"] == house["probability_mean"] == pytest.approx(float(probability[12, 20]), abs=1e-4)
    assert (barn["zone"], barn["zone_0.2"], barn["zone_0.05"]) == ("0.05", 0, 1)
    row = probability[12]
    assert road["pixels"] == pytest.approx(40, abs=1)
    assert road["zone_0.2"] == pytest.approx((row >= 0.2).mean(), abs=0.03)
    write_rows(tmp_path / "a.csv", rows)
    text = (tmp_path / "a.csv").read_text()
    assert text.startswith("asset,probability_max,") and ",'=barn" in text, "a spreadsheet shows the name"


def test_bad_assets_are_one_sentence(tmp_path: Path):
    (tmp_path / "a.gpkg").write_text("no layer")
    for name, sentence in (
        ("a.gpkg", "cannot be read as a vector layer"),
        ("none.gpkg", "no such file; give --assets"),
    ):
        with pytest.raises(DataError, match=sentence):
            read_assets(tmp_path / name)


def test_assets_in_another_file_are_not_read(layer: Path, tmp_path: Path):
    """GDAL's lists of files, whatever they are called, would show what lies in files that nobody named."""
    listed = f"<OGRVRTDataSource><OGRVRTLayer name='assets'><SrcDataSource>{layer}</SrcDataSource></OGRVRTLayer>"
    (tmp_path / "a.geojson").write_text(f"{listed}</OGRVRTDataSource>")
    with pytest.raises(DataError, match=r"a\.geojson: cannot be read as a vector layer \(OGR_VRT is not one of GPKG"):
        read_assets(tmp_path / "a.geojson")

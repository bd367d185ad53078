"""`fcer predict` end to end: real fires in, files that rasterio opens out, a run in a real MLflow store."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import mlflow
import numpy as np
import pytest
import rasterio
import yaml
from rasterio.features import geometry_mask
from rasterio.warp import transform_bounds, transform_geom

import fcer
from fcer.core.recalibration import NONE
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.data.catalog import open_catalog, open_fires
from fcer.data.detections.export import write_detections
from fcer.models.calibration_files import Calibration, calibration_file, save_calibration
from fcer.models.raw_days import predict_days
from fcer.models.student_files import load_student
from fcer.tracking.student_model import REGISTERED, log_student
from mlflow_stores import fresh_store
from tiff_structure import assert_cloud_optimized
from vegetation_student import write_student, write_vegetation_student

Run = Callable[..., tuple[int, str, str]]
CUT = "0.6"
"""A threshold that the student's probabilities lie on both sides of."""


LEVEL = 0.35


def calibration_of(student: str) -> Calibration:
    """One that changes no probability, with one zone: where the probability is at least `LEVEL`."""
    rule = ZoneRule(ZoneFamily("threshold"), LEVEL, 0.2, 0.19, 9, 1, area_km2=40.0, area_2n_km2=30.0)
    return Calibration(student, NONE, NONE, (rule,), 3.0, ("a", "b"), chose_epoch=True, code_version="0")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store of its own with a champion: the folder, and the run that made it."""
    folder = tmp_path_factory.mktemp("registry")
    uri = fresh_store(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.chdir(folder)
        client = mlflow.MlflowClient(uri, uri)
        run_id = client.create_run(client.create_experiment("students")).info.run_id
        student = write_vegetation_student(folder / "student", "key of it")
        save_calibration(student, calibration_of("key of it"))
        log_student(run_id, student, {"val_auroc": 0.7})
        yield folder, run_id


@pytest.fixture
def predict(fcer_main: Run, registry: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{registry[0]}/mlflow.db")
    return lambda *arguments: fcer_main("predict", *arguments)


@pytest.fixture
def copied(small_fires: Path, tmp_path: Path) -> Path:
    """Fires to be broken."""
    return shutil.copytree(small_fires, tmp_path / "fires", ignore=shutil.ignore_patterns("*.json"))


def bands_of(path: Path) -> np.ndarray:
    with rasterio.open(path) as image:
        return image.read()


def direct(registry: tuple[Path, str], fire_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """What the student says of all 23 channels of the latest five days."""
    (fire,) = open_fires(fire_path).fires
    maps = predict_days(load_student(registry[0] / "student"), fire.read(slice(-5, None), range(23))[None])
    return maps.probability_BHW[0].numpy(), maps.uncertainty_BHW[0].numpy()


def latest_run(registry: tuple[Path, str]) -> mlflow.entities.Run:
    client = client_of(registry)
    found = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], "tags.`fcer.command` = 'predict'")
    return found[0]


def client_of(registry: tuple[Path, str]) -> mlflow.MlflowClient:
    uri = f"sqlite:///{registry[0]}/mlflow.db"
    return mlflow.MlflowClient(uri, uri)


def test_the_map_lies_on_the_input_and_holds_what_the_model_says(
    predict: Run, registry: tuple[Path, str], small_fires: Path, tmp_path: Path
):
    source = small_fires / "2018" / "fire_synthetic_20180000"
    code, out, err = predict("--input", source, "--out", "tomorrow.tif", "--threshold", CUT)
    assert (code, err) == (0, "")
    assert out.startswith("tomorrow.tif: 1 fire predicted; ") and "next: open tomorrow.tif in a GIS" in out
    assert_cloud_optimized(tmp_path / "tomorrow.tif")
    days = sorted(source.glob("*.tif"))[-5:]
    with rasterio.open(days[-1]) as day, rasterio.open(tmp_path / "tomorrow.tif") as image:
        assert (image.crs, image.transform, image.shape) == (day.crs, day.transform, day.shape)
        assert image.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert image.descriptions == (
            *("calibrated fire probability", "uncertainty", "fire (probability above 0.6)"),
            "zone (expected miss outside at most)",
        )
        tags = image.tags()
        probability, uncertainty, fire, zone = image.read()
    expected = direct(registry, source)
    np.testing.assert_array_equal(probability, expected[0])
    np.testing.assert_array_equal(uncertainty, expected[1])
    np.testing.assert_array_equal(fire, expected[0] > np.float32(0.6))
    assert 0 < fire.sum() < fire.size
    assert tags["MODEL_URI"] == "models:/fcer-student@champion" and tags["MODEL_VERSION"] == "1"
    assert (tags["MODEL_RUN_ID"], tags["MODEL_STUDENT_KEY"]) == (registry[1], "key of it")
    assert tags["INPUT_DATES"].split() == [day.stem for day in days]
    assert tags["PREDICTED_DATE"] > days[-1].stem and tags["FCER_VERSION"] == fcer.__version__
    assert (float(tags["THRESHOLD"]), tags["CALIBRATION"]) == (0.6, "none")
    np.testing.assert_array_equal(np.isfinite(zone), expected[0] >= LEVEL)
    assert set(zone[np.isfinite(zone)].tolist()) == {np.float32(0.2)}
    assert "at most 20 % of the next day's fire lies outside this zone" in tags["ZONE_0.2"]


def test_every_name_of_the_model_and_both_forms_of_a_fire_give_the_same(
    predict: Run, registry: tuple[Path, str], small_fires: Path, tmp_path: Path
):
    folder, run_id = registry
    geotiff, hdf5 = (
        small_fires / "2019" / "fire_synthetic_20190001",
        small_fires / "2019" / "fire_synthetic_20190001.hdf5",
    )
    expected = np.stack(direct(registry, hdf5))
    models = [f"models:/{REGISTERED}/1", f"runs:/{run_id}", folder / "student"]
    for k, model in enumerate(models):
        code, _, err = predict("--input", hdf5 if k % 2 else geotiff, "--model", model, "--out", f"{k}.tif")
        assert (code, err) == (0, "")
        np.testing.assert_array_equal(bands_of(tmp_path / f"{k}.tif")[:2], expected)


def test_many_fires_and_their_run(predict: Run, registry: tuple[Path, str], small_fires: Path, tmp_path: Path):
    code, out, err = predict("--input", small_fires, "--png", "--threshold", CUT)
    assert (code, err) == (0, "")
    assert out.startswith("work/predictions: 4 fires predicted; ")
    written = tmp_path / "work" / "predictions"
    names = sorted(path.stem for path in small_fires.glob("*/*.hdf5"))
    each = [f"{name}.{suffix}" for name in names for suffix in ("png", "tif")]
    assert sorted(path.name for path in written.iterdir()) == sorted([*each, "all_fires.geojson"])
    run, client = latest_run(registry), client_of(registry)
    assert run.info.status == "FINISHED"
    assert (run.data.params["threshold"], run.data.params["input"]) == (CUT, str(small_fires))
    assert (run.data.metrics["predict/fires"], run.data.metrics["predict/left_out"]) == (4, 0)
    assert run.data.metrics["predict/seconds_per_fire"] > 0
    assert run.data.tags["fcer.from.student"] == registry[1] and run.data.tags["fcer.model.version"] == "1"
    looks = {file.path for file in client.list_artifacts(run.info.run_id, "quicklooks")}
    assert looks == {f"quicklooks/{name}.png" for name in names}
    table = client.download_artifacts(run.info.run_id, "predictions.csv", str(tmp_path))
    rows = list(csv.DictReader(Path(table).read_text().splitlines()))
    assert [row["fire"] for row in rows] == names
    for row in rows:
        _, uncertainty, fire, _ = bands_of(tmp_path / row["file"])
        assert int(row["fire_pixels"]) == fire.sum()
        assert float(row["area_km2"]) == pytest.approx(fire.sum() * 0.375**2, rel=2e-3)
        assert float(row["mean_uncertainty"]) == pytest.approx(uncertainty.mean(), abs=1e-6)
        assert float(row["max_uncertainty"]) == pytest.approx(uncertainty.max(), abs=1e-6)


def test_broken_fires_do_not_stop_the_rest(predict: Run, registry: tuple[Path, str], copied: Path, tmp_path: Path):
    truncated = copied / "2018" / "fire_synthetic_20180000.hdf5"
    with truncated.open("r+b") as file:
        file.truncate(5000)
    for name, gone in (("fire_synthetic_20180001", slice(None, -4)), ("fire_synthetic_20190000", slice(-2, -1))):
        folder = copied / name[-8:-4] / name
        folder.with_suffix(".hdf5").unlink()
        for day in sorted(folder.glob("*.tif"))[gone]:
            day.unlink()
    code, out, err = predict("--input", copied, "--out", "maps")
    assert code == 0 and out.startswith("maps: 1 fire predicted, 3 left out; ")
    assert [path.name for path in (tmp_path / "maps").glob("*.tif")] == ["fire_synthetic_20190001.tif"]
    assert err.count("\n") == 3
    assert f"left out: {truncated}: the HDF5 file is truncated or damaged" in err
    assert f"left out: {copied}/2018/fire_synthetic_20180001: 4 days, but 5 are needed" in err
    assert f"left out: {copied}/2019/fire_synthetic_20190000: a day is missing between " in err
    assert latest_run(registry).data.metrics["predict/left_out"] == 3
    code, out, err = predict("--input", truncated)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert err.startswith(f"fcer: {truncated}: the HDF5 file is truncated or damaged")
    failed = latest_run(registry)
    assert failed.info.status == "FAILED" and f"fcer: {failed.data.tags['fcer.error']}\n" == err


def test_nothing_where_the_input_held_nothing(predict: Run, copied: Path, tmp_path: Path):
    hdf5 = copied / "2018" / "fire_synthetic_20180000.hdf5"
    with h5py.File(hdf5, "r+") as file:
        file["data"][:, :5, :7, 3:12] = np.nan
    assert predict("--input", hdf5, "--out", "a.tif")[0] == 0
    expected = np.zeros(bands_of(tmp_path / "a.tif").shape[1:], bool)
    expected[:7, 3:12] = True
    with rasterio.open(tmp_path / "a.tif") as image:
        assert np.isnan(image.nodata)
        for band in image.read():
            np.testing.assert_array_equal(np.isnan(band), expected)
        assert set(np.unique(image.read(3)[~expected])) <= {0, 1}


def test_outlines_are_the_perimeter_the_zones_and_the_contours(predict: Run, small_fires: Path, tmp_path: Path):
    source = small_fires / "2018" / "fire_synthetic_20180001.hdf5"
    code, _, err = predict("--input", source, "--out", "a.tif", "--geojson", "--threshold", CUT)
    assert (code, err) == (0, "")
    with rasterio.open(tmp_path / "a.tif") as image:
        probability, uncertainty, fire, zone = image.read()
        crs, transform, bounds = image.crs, image.transform, transform_bounds(image.crs, "EPSG:4326", *image.bounds)
    features = json.loads((tmp_path / "a.geojson").read_text())["features"]
    expected = {("perimeter", None): fire > 0, ("zone", 0.2): np.isfinite(zone)}
    expected |= {("contour", level): probability >= level for level in (0.1, 0.25, 0.5, 0.75, 0.9)}
    for (kind, level), mask in expected.items():
        again = np.zeros(mask.shape, bool)
        for feature in features:
            about = feature["properties"]
            if (about["kind"], about.get("expected_miss_at_most", about.get("probability_at_least"))) != (kind, level):
                continue
            geometry = transform_geom("EPSG:4326", crs, feature["geometry"])
            inside = geometry_mask([geometry], mask.shape, transform, invert=True)
            assert about["mean_probability"] == pytest.approx(probability[inside].mean(), abs=1e-4)
            assert about["mean_uncertainty"] == pytest.approx(uncertainty[inside].mean(), abs=1e-4)
            assert about["area_km2"] == pytest.approx(inside.sum() * 0.375**2, rel=2e-3)
            assert about["model_version"] == "1" and ("guarantee" in about) == (kind == "zone")
            corners = np.array([point for ring in feature["geometry"]["coordinates"] for point in ring])
            assert (corners >= np.array(bounds[:2]) - 1e-5).all() and (corners <= np.array(bounds[2:]) + 1e-5).all()
            again |= inside
        np.testing.assert_array_equal(again, mask)


def test_a_student_without_calibration_is_said_to_have_none(
    predict: Run, registry: tuple[Path, str], small_fires: Path, tmp_path: Path
):
    bare = shutil.copytree(registry[0] / "student", tmp_path / "bare")
    calibration_file(bare).unlink()
    source = small_fires / "2018" / "fire_synthetic_20180001.hdf5"
    code, _, err = predict("--input", source, "--model", bare, "--out", "a.tif")
    assert code == 0 and "has no calibration: its probabilities are as it says, and no zone is drawn" in err
    with rasterio.open(tmp_path / "a.tif") as image:
        assert image.descriptions[0] == "fire probability" and image.count == 3


def test_detections_become_forecasts_of_the_fires_that_burn(
    predict: Run, registry: tuple[Path, str], small_fires: Path, tmp_path: Path
):
    """From what satellites would have seen of the fires of one year: those that burnt on the last full day.

    The champion reads vegetation, which detections do not tell of: that of students of the fire alone is taken.
    """
    write_detections(tmp_path / "viirs.csv", open_catalog(small_fires, [2018]).fires)
    student = write_student(tmp_path / "seer", "of fire", features="fire", arch="unet_t1")
    save_calibration(student, calibration_of("of fire"))
    options = ("--input", "viirs.csv", "--min-detections", "5", "--out", "maps")
    code, _, err = predict(*options)
    assert code == 2 and "in the channels that this student reads; give --model a student of such data" in err
    log_student(registry[1], student, {"val_auroc": 0.7})
    code, out, err = predict(*options)
    assert code == 0, err
    assert "models:/fcer-student@champion-fire predicts: models:/fcer-student@champion reads channels that these" in out
    burning, day = re.search(r"(\d+) of them burnt on (\S+), the last full day", out).groups()
    maps = sorted((tmp_path / "maps").glob("*.tif"))
    assert len(maps) == int(burning) >= 1
    for path in maps:
        with rasterio.open(path) as image:
            assert image.tags()["PREDICTED_DATE"] > day and image.crs.to_epsg() // 100 in (326, 327)


def test_without_a_place_on_earth_there_are_pixels_alone(predict: Run, copied: Path, tmp_path: Path):
    hdf5 = copied / "2018" / "fire_synthetic_20180000.hdf5"
    with h5py.File(hdf5, "r+") as file:
        del file["data"].attrs["crs"], file["data"].attrs["img_dates"]
    code, _, err = predict("--input", hdf5, "--out", "a.tif", "--geojson", "--png")
    assert code == 0
    place, dates = err.splitlines()
    assert place.startswith(f"fcer: warning: {hdf5}: nothing says where on earth it lies (it has no coordinate system)")
    assert place.endswith("its map has pixels alone and no GeoJSON is written")
    assert dates.endswith("it does not say the dates of its days; they are taken to follow one another")
    assert not (tmp_path / "a.geojson").exists() and (tmp_path / "a.png").exists()
    with rasterio.open(tmp_path / "a.tif") as image:
        assert image.crs is None
        assert (image.tags()["PREDICTED_DATE"], image.tags()["INPUT_DATES"]) == ("unknown", "unknown")


def test_fires_of_one_name_keep_apart(predict: Run, copied: Path, tmp_path: Path):
    for year in ("2018", "2019"):
        (copied / year / f"fire_synthetic_{year}0000.hdf5").rename(copied / year / "fire_A.hdf5")
        shutil.rmtree(copied / year / f"fire_synthetic_{year}0000")
    assert predict("--input", copied, "--out", "maps")[0] == 0
    names = ["2018_fire_A.tif", "2019_fire_A.tif", "fire_synthetic_20180001.tif", "fire_synthetic_20190001.tif"]
    assert sorted(path.name for path in (tmp_path / "maps").glob("*.tif")) == names
    (copied / "fire_A.hdf5").write_bytes((copied / "2018" / "fire_A.hdf5").read_bytes())
    code, _, err = predict("--input", copied, "--out", "maps")
    assert code == 0 and "its map would be 2018_fire_A.tif, as that of" in err


def test_the_input_is_never_written_over(predict: Run, copied: Path):
    folder = copied / "2018" / "fire_synthetic_20180000"
    last = max(folder.glob("*.tif"))
    before = last.read_bytes()
    code, _, err = predict("--input", folder, "--out", last)
    assert code == 2 and f"{last}: is a file of the fire itself; choose another --out" in err
    assert last.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--input", "FIRES", "--out", "a.tif"],
            "out: a.tif is one file, but FIRES holds 4 fires; give --out a folder",
        ),
        (["--input", "nowhere"], "nowhere: no such file or folder"),
        (["--input", "FIRES", "--model", "models:/fcer-student/9"], "has no models:/fcer-student/9"),
        (["--input", "FIRES", "--threshold", "1.5"], "threshold is 1.5, but should be at most 1"),
    ],
)
def test_bad_options_are_one_line(options: list[str], sentence: str, predict: Run, small_fires: Path):
    code, out, err = predict(*(option.replace("FIRES", str(small_fires)) for option in options))
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert sentence.replace("FIRES", str(small_fires)) in err


@pytest.mark.slow
def test_from_nothing_a_student_is_distilled_first(
    fcer_main: Run, small_fires: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    code, _, err = fcer_main("predict", "--input", small_fires)
    assert code == 2 and err.count("\n") == 1
    assert "model: no models:/fcer-student@champion is registered; run fcer distill, or name a student with" in err
    study = {
        **{"fires_per_year": 1, "image_size": [32, 40], "fire_days": [7, 8], "crop": 32, "width": 0.0625},
        **{"member_epochs": 1, "member_batch_size": 4, "head_epochs": 2, "workers": 1},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(study))
    code, out, err = fcer_main("predict", "--config", "tiny.yaml")
    assert code == 0, err
    assert "no student was named and no models:/fcer-student@champion is registered, so one is distilled first" in out
    assert "work/predictions: 4 fires predicted; " in out
    (student,) = (tmp_path / "work" / "students").glob("utae_t5-2021-*")
    (champion,) = mlflow.MlflowClient().search_model_versions(f"name = '{REGISTERED}'")
    written = next((tmp_path / "work" / "predictions").glob("*.tif"))
    with rasterio.open(written) as image:
        tags = image.tags()
        assert tags["MODEL_URI"] == str(student.relative_to(tmp_path))
        assert tags["MODEL_STUDENT_KEY"] == champion.tags["key"]
        assert (image.count == 4) == calibration_file(student).exists()
    runs = mlflow.MlflowClient().search_runs(["1"])
    (own,) = [run for run in runs if run.data.tags.get("fcer.command") == "predict" and run.info.status == "FINISHED"]
    (distilled,) = [run for run in runs if run.info.run_name == "distill 2021"]
    assert own.data.tags["fcer.from.student"] == distilled.info.run_id
    code, out, _ = fcer_main("predict", "--config", "tiny.yaml")
    assert code == 0 and "distilled" not in out, "now there is a champion"
    with rasterio.open(written) as image:
        assert image.tags()["MODEL_URI"] == "models:/fcer-student@champion"
        assert image.tags()["MODEL_STUDENT_KEY"] == tags["MODEL_STUDENT_KEY"]


def test_everything_for_a_gis_of_several_fires(predict: Run, small_fires: Path, tmp_path: Path):
    """Synthetic fires: their files say so by name, and an agency's assets are held against each of their maps."""
    pyogrio = pytest.importorskip("pyogrio", reason="pyogrio, of the extra gis, is not installed")
    pytest.importorskip("pystac", reason="pystac, of the extra gis, is not installed")
    lng, lat = next(fire.lnglat for fire in open_fires(small_fires / "2018" / "fire_synthetic_20180000.hdf5").fires)
    point = {
        "type": "Feature",
        "properties": {"name": "mill"},
        "geometry": {"type": "Point", "coordinates": [lng, lat]},
    }
    (tmp_path / "assets.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [point]}))
    given = [
        "--input",
        small_fires / "2018",
        "--out",
        "maps",
        "--threshold",
        CUT,
        "--gis",
        "--assets",
        "assets.geojson",
    ]
    code, out, err = predict(*given)
    assert (code, err) == (0, "") and "maps: 1 assets lie on the maps of 1 of 2 fires" in out
    maps = tmp_path / "maps"
    names = ["fire_synthetic_20180000", "fire_synthetic_20180001"]
    assert sorted(path.stem for path in maps.glob("*.tif")) == names
    for name in names:
        assert all((maps / f"{name}{end}").exists() for end in (".gpkg", ".kml", ".qml", ".stac.json", "_fire.tiff"))
    with rasterio.open(maps / f"{names[0]}.tif") as image, rasterio.open(maps / f"{names[0]}_fire.tiff") as mask:
        np.testing.assert_array_equal(image.read(3), mask.read(1))
        assert image.tags()["SYNTHETIC"].startswith("yes") and image.tags()["TIFFTAG_SOFTWARE"].startswith("fcer ")
    (row,) = csv.DictReader((maps / f"{names[0]}.assets.csv").read_text().splitlines())
    assert (row["asset_name"], row["synthetic"]) == ("mill", "yes") and float(row["probability_max"]) > 0
    with rasterio.open(maps / "mosaic.vrt") as mosaic:
        assert mosaic.count == 4 and np.nanmax(mosaic.read(1)) > 0
    fires = pyogrio.raw.read(maps / "all_fires.gpkg", layer="zones")
    assert set(fires[3][list(fires[0]["fields"]).index("poly_IncidentName")]) == set(names)

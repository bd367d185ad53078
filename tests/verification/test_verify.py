"""Maps met with the truth: scored once, on the right day and grid, and a sentence for whatever cannot be."""

import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rasterio
import rasterio.shutil
from hypothesis import given, settings
from hypothesis import strategies as st

from detection_cases import FIRST, burning, written
from fcer.core.calibration import base_losses, nll_loss
from fcer.core.ranking import auroc_score
from fcer.core.regions import fire_region
from fcer.core.segmentation import average_precision_score
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.detections import DetectionSettings, ingest
from fcer.data.fire import Place
from fcer.data.hdf5 import open_hdf5, write_hdf5
from fcer.errors import ConfigError, DataError
from fcer.verification.forecast import find_maps, read_forecast
from fcer.verification.record import read_record, with_rows, write_record
from fcer.verification.truth import FireTruth, open_truth
from fcer.verification.verify import Verified, verify_maps
from forecast_cases import place_at, write_forecast

DAY = date(2021, 7, 5)
NOTHING = read_record(Path("no such file"))


def truth_of(
    folder: Path, *, days: int = 3, place: Place | None = None, side: int = 32, name: str = "fire_1"
) -> FireTruth:
    """A fire that burns in a square of 10 px, from the day before `DAY` on."""
    images = np.ones((days, 23, side, side), np.float32)
    images[:, ACTIVE_FIRE] = 0
    images[:, ACTIVE_FIRE, 12:22, 12:22] = 12
    path = folder / "2021" / f"{name}.hdf5"
    dates = [DAY + timedelta(days=k - 1) for k in range(days)]
    write_hdf5(path, iter(images), images.shape, dates=dates, lnglat=(-121.0, 40.0), place=place or place_at())
    return FireTruth((open_hdf5(path),))


def verified(path: Path, truth: FireTruth) -> Verified:
    return verify_maps([path], truth, NOTHING)


def test_scores_are_those_of_the_plain_functions(tmp_path: Path):
    path = write_forecast(tmp_path / "a.tif", DAY)
    truth = truth_of(tmp_path)
    (row,) = verified(path, truth).record.to_dict("records")
    with rasterio.open(path) as image:
        prob, unc, zone = image.read()
    burnt = np.zeros((32, 32), bool)
    burnt[12:22, 12:22] = True
    near = fire_region(burnt, 4.0)
    base = base_losses(np.array(100), np.array(near.sum()))[1]
    assert row["ap"] == pytest.approx(average_precision_score(burnt, prob))
    assert row["nll_skill"] == pytest.approx(1 - nll_loss(burnt[near], prob[near]) / base)
    assert row["auroc"] == pytest.approx(auroc_score(((prob > 0.5) != burnt)[near], unc[near]))
    assert row["miss_0.2"] == np.mean(np.isnan(zone[burnt])) == 0
    assert row["zone_km2_0.2"] == pytest.approx(256 * 0.375**2, rel=0.01)
    assert (row["status"], row["date"], row["fire"], row["lacking"]) == ("verified", "2021-07-05", "fire_1", "")


def test_the_same_forecast_counts_once(tmp_path: Path):
    path, truth = write_forecast(tmp_path / "a.tif", DAY), truth_of(tmp_path)
    other = write_forecast(tmp_path / "again.tif", DAY, seed=1)
    once = verified(path, truth)
    write_record(tmp_path / "record.csv", once.record)
    again = verify_maps([path, other], truth, read_record(tmp_path / "record.csv"))
    pd.testing.assert_frame_equal(again.record, once.record)
    assert (once.new, again.new, again.repeated) == (1, 0, 2)


def test_a_day_that_is_not_known_yet_waits_and_is_then_scored(tmp_path: Path):
    path = write_forecast(tmp_path / "a.tif", DAY)
    early = verified(path, truth_of(tmp_path, days=1))
    assert early.record["status"].tolist() == ["waiting"] and "add 2021-07-05 to it" in early.waiting[0]
    later = verify_maps([path], truth_of(tmp_path), early.record)
    assert later.record["status"].tolist() == ["verified"] and later.new == 1


def test_a_day_that_holds_nothing_is_left_out_and_counted(tmp_path: Path):
    fire = truth_of(tmp_path).fires[0]
    images = fire.read(slice(None), range(23))
    images[1] = np.nan
    write_hdf5(fire.path, iter(images), images.shape, dates=fire.dates, lnglat=(-121.0, 40.0), place=place_at())
    found = verified(write_forecast(tmp_path / "a.tif", DAY), FireTruth((open_hdf5(fire.path),)))
    assert found.record["status"].tolist() == ["missing"] and "holds nothing of 2021-07-05" in found.missing[0]
    assert np.isnan(found.record["ap"][0])


def test_the_truth_of_a_larger_image_is_cut_to_the_forecast(tmp_path: Path):
    """As of a fire that has grown since: its image is larger, on the same pixels."""
    small = verified(write_forecast(tmp_path / "a.tif", DAY), truth_of(tmp_path)).record
    shifted = place_at(300_000.0 - 375 * 3, 4_500_000.0 + 375 * 2)
    large = truth_of(tmp_path, place=shifted, side=64, name="grown")
    moved = verified(write_forecast(tmp_path / "a.tif", DAY), large).record
    assert moved["burnt_km2"][0] == small["burnt_km2"][0]
    assert moved["ap"][0] != small["ap"][0]  # the square lies elsewhere in it


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (place_at(300_100.0), "lies on another grid than"),
        (Place("EPSG:32611", place_at().transform), "lies on another grid than"),
    ],
)
def test_maps_of_another_grid_are_refused(place: Place, sentence: str, tmp_path: Path):
    found = verified(write_forecast(tmp_path / "a.tif", DAY, place=place), truth_of(tmp_path))
    assert sentence in found.problems[0] and found.record.empty


def test_maps_without_tags_are_refused(tmp_path: Path):
    path = tmp_path / "plain.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=8, width=8, dtype="float32") as image:
        image.write(np.zeros((1, 8, 8), np.float32))
    with pytest.raises(DataError, match="does not say which student predicted which day"):
        read_forecast(path)
    with pytest.raises(DataError, match="does not say which student predicted which day"):
        read_forecast(write_forecast(tmp_path / "odd.tif", DAY, student="{}"))
    path.write_bytes(b"no tiff")
    with pytest.raises(DataError, match="cannot be read as a GeoTIFF"):
        read_forecast(path)


@pytest.mark.parametrize(
    "tags",
    [
        {"PREDICTED_DATE": "soon"},
        {"ANCHOR_PX": "nan"},
        {"INPUT_MEANS": "[" * 100_000},
        {"EXPECTED": '{"scores": 3}'},
        {"PREDICTED_DATE": "unknown"},
    ],
    ids=lambda tags: next(iter(tags)),
)
def test_tags_that_cannot_be_are_refused(tags: dict[str, str], tmp_path: Path):
    with pytest.raises(DataError, match="its tags cannot be read"):
        read_forecast(write_forecast(tmp_path / "a.tif", DAY, **tags))


def test_places_that_hold_no_map_are_said(tmp_path: Path):
    with pytest.raises(DataError, match="no GeoTIFF in it"):
        find_maps((tmp_path,))
    with pytest.raises(DataError, match="no such file or folder"):
        find_maps((tmp_path / "gone",))


def test_a_damaged_record_is_said(tmp_path: Path):
    (tmp_path / "record.csv").write_text("key,date\na,b\n")
    with pytest.raises(DataError, match="is no record of forecasts"):
        read_record(tmp_path / "record.csv")
    write_record(tmp_path / "record.csv", verified(write_forecast(tmp_path / "a.tif", DAY), truth_of(tmp_path)).record)
    read_record(tmp_path / "record.csv")
    text = (tmp_path / "record.csv").read_text()
    (tmp_path / "record.csv").write_text(text.replace(f",{DAY},", f",{DAY + timedelta(days=1)},"))
    with pytest.raises(DataError, match="row 1 has changed since it was written"):
        read_record(tmp_path / "record.csv")


def test_a_map_that_is_not_what_was_written_is_refused(tmp_path: Path):
    """Another day in its tags, or another pixel, would be verified as if the student had said it."""
    path = write_forecast(tmp_path / "a.tif", DAY)
    copy = tmp_path / "copy.tif"
    rasterio.shutil.copy(path, copy, driver="GTiff", compress="LZW")
    assert read_forecast(copy).key == read_forecast(path).key, "packed in another way, it is the same map"
    with rasterio.open(copy, "r+") as image:
        image.update_tags(PREDICTED_DATE=str(DAY + timedelta(days=1)))
    with pytest.raises(DataError, match=r"copy\.tif: what it holds is not what was written"):
        read_forecast(copy)
    content = path.read_bytes()
    path.write_bytes(content.replace(str(DAY).encode(), str(DAY + timedelta(days=1)).encode()))
    with pytest.raises(DataError, match=r"a\.tif: what it holds is not what was written"):
        read_forecast(path)


def test_a_map_that_declares_more_than_it_holds_is_refused(tmp_path: Path):
    path, size = tmp_path / "a.tif", {"width": 400_000, "height": 400_000, "count": 3, "dtype": "float32"}
    blocks = {"tiled": True, "blockxsize": 16384, "blockysize": 16384, "SPARSE_OK": True, "BIGTIFF": "YES"}
    with rasterio.open(path, "w", driver="GTiff", **size, **blocks):
        pass
    with pytest.raises(DataError, match=r"more than its \d+ bytes can hold"):
        read_forecast(path)


@pytest.fixture(scope="module")
def detected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Seven days of a burning fire as detections, and the same as a fire's file."""
    folder = tmp_path_factory.mktemp("detected")
    file = written(folder, burning())
    done = ingest([file], folder / "fires", DetectionSettings(min_detections=5))
    return file, done.fires[0].path


def forecast_on(fire_path: Path, path: Path, day: date) -> Path:
    fire = open_hdf5(fire_path)
    return write_forecast(path, day, place=fire.place, side=fire.height, fire=fire.name)


def test_detections_are_painted_as_the_fire_was(detected: tuple[Path, Path], tmp_path: Path):
    file, fire_path = detected
    path = forecast_on(fire_path, tmp_path / "a.tif", FIRST + timedelta(days=3))
    both = [verify_maps([path], open_truth([one], DetectionSettings()), NOTHING).record for one in (file, fire_path)]
    pd.testing.assert_frame_equal(*both)
    assert both[0]["burnt_km2"][0] > 1


@pytest.mark.parametrize(
    ("days", "status", "sentence"),
    [
        (20, "waiting", "the detections end with 2020-08-07"),
        (-2, "missing", "the detections begin with 2020-08-01"),
    ],
)
def test_days_that_detections_do_not_cover(
    detected: tuple[Path, Path], tmp_path: Path, days: int, status: str, sentence: str
):
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=days))
    (row,) = verify_maps([path], open_truth([detected[0]], DetectionSettings()), NOTHING).record.to_dict("records")
    assert row["status"] == status and sentence in row["reason"]


def test_the_last_day_of_a_download_in_the_middle_of_it_waits(detected: tuple[Path, Path], tmp_path: Path):
    file = written(tmp_path, burning(version="2.0NRT"))
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=6))
    found = verify_maps([path], open_truth([file], DetectionSettings()), NOTHING)
    assert found.record["status"].tolist() == ["waiting"] and "is not over in the download" in found.waiting[0]


def test_a_download_of_one_day_that_is_not_over_tells_nothing_yet(detected: tuple[Path, Path], tmp_path: Path):
    frame = burning(version="2.0NRT")
    file = written(tmp_path, frame[frame.acq_date == str(FIRST)])
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=1))
    found = verify_maps([path], open_truth([file], DetectionSettings()), NOTHING)
    assert "hold no whole day; give those of 2020-08-02" in found.waiting[0]


@pytest.mark.parametrize(
    ("version", "day", "status"), [("2", 4, "verified"), ("2", 5, "waiting"), ("2.0NRT", 4, "waiting")]
)
def test_a_day_that_one_of_two_downloads_does_not_have_waits(
    detected: tuple[Path, Path], tmp_path: Path, version: str, day: int, status: str
):
    """The one of NOAA-20 has five days, the last of which may not be over in near real time."""
    own = [burning(version=version), burning(days=5, seed=1, satellite="1", version=version)]
    files = [written(tmp_path, frame, f"{k}.csv") for k, frame in enumerate(own)]
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=day))
    (row,) = verify_maps([path], open_truth(files, DetectionSettings()), NOTHING).record.to_dict("records")
    assert row["status"] == status
    if status == "waiting":
        assert "the detections of NOAA-20 end with 2020-08-0" in row["reason"] and "--satellites" in row["reason"]
    (row,) = verify_maps([path], open_truth(files, DetectionSettings(satellites=("N",))), NOTHING).record.to_dict(
        "records"
    )
    assert row["status"] == "verified"


def test_a_cloud_is_told_from_a_fire_that_is_out(detected: tuple[Path, Path], tmp_path: Path):
    """Nothing is seen on the fifth day: first nobody knows, and two days later it was a cloud."""
    frame = burning()
    elsewhere = burning(lat=45.0, lng=-110.0)
    hidden = pd.concat([frame[frame.acq_date != str(FIRST + timedelta(days=4))], elsewhere])
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=4))
    for until, status in ((4, "waiting"), (6, "missing")):
        known = hidden[hidden.acq_date <= str(FIRST + timedelta(days=until))]
        file = written(tmp_path, known, f"{until}.csv")
        found = verify_maps([path], open_truth([file], DetectionSettings()), NOTHING)
        assert found.record["status"].tolist() == [status]


def test_detections_of_another_place_say_nothing(detected: tuple[Path, Path], tmp_path: Path):
    file = written(tmp_path, burning(lat=45.0, lng=-110.0))
    path = forecast_on(detected[1], tmp_path / "a.tif", FIRST + timedelta(days=3))
    found = verify_maps([path], open_truth([file], DetectionSettings()), NOTHING)
    assert found.record["status"].tolist() == ["missing"] and "where the forecast lies" in found.missing[0]


def test_a_grid_that_detections_cannot_be_painted_on(detected: tuple[Path, Path], tmp_path: Path):
    path = write_forecast(
        tmp_path / "a.tif", FIRST + timedelta(days=3), place=Place("EPSG:4326", (0.004, 0, -120, 0, -0.004, 40))
    )
    found = verify_maps([path], open_truth([detected[0]], DetectionSettings()), NOTHING)
    assert "not one of 375 m in a UTM zone" in found.problems[0]


def test_detections_and_a_folder_together_are_refused(detected: tuple[Path, Path]):
    with pytest.raises(ConfigError, match="files of detections"):
        open_truth([detected[0], detected[1].parent], DetectionSettings())


@settings(max_examples=8)
@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=5), st.text(max_size=8))
def test_a_record_is_read_back_to_the_last_bit(values: list[float], name: str):
    rows = [{"key": str(k), "date": "2021-07-05", "fire": name, "ap": value} for k, value in enumerate(values)]
    record = with_rows(NOTHING, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.csv"
        write_record(path, record)
        pd.testing.assert_frame_equal(read_record(path), record, check_exact=True)

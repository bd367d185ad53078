"""`fcer rehearse`, `verify` and `promote` end to end: the record on disk, in MLflow, with the registered version."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import mlflow
import pandas as pd
import pytest

from fcer.data.catalog import open_catalog
from fcer.data.fire_view import as_of
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.deploy.map_files import MapFiles
from fcer.models.calibration_files import Calibration, load_calibration, save_calibration
from fcer.models.student_files import load_student
from fcer.tracking.student_model import log_student
from fcer.verification.alarms import KINDS
from forecast_cases import EXPECTED, calibration_of
from study_cases import fcer, start
from vegetation_student import write_vegetation_student

SEASON = Recipe(years=(2021,), fires_per_year=3, image_size=(32, 40), fire_days=(7, 8), seed=4)


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a registered student, a season of fires, and the forecasts that were made in it."""
    folder = tmp_path_factory.mktemp("agency")
    uri = f"sqlite:///{folder}/mlflow.db"
    synthesize(SEASON, folder / "fires", workers=1)
    student = write_vegetation_student(folder / "student", "key")
    save_calibration(student, calibration_of("key"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.chdir(folder)
        client = mlflow.MlflowClient(uri, uri)
        run_id = client.create_run(client.create_experiment("students")).info.run_id
        log_student(run_id, student, {"val_auroc": 0.7})
        write_maps(folder, folder / "maps", calibration_of("key"))
        yield folder


def write_maps(agency: Path, out: Path, calibration: Calibration, student: str = "key") -> None:
    """Two forecasts of each fire."""
    identity = {"uri": "x", "student_key": student, "code_version": "0"}
    registered = {"name": "fcer-student", "version": "1"} if student == "key" else {}
    files = MapFiles(load_student(agency / "student"), {**identity, **registered}, calibration, 0.5, False, False)
    for fire in open_catalog(agency / "fires", [2021]).fires:
        assert fire.dates is not None
        for day in fire.dates[4:6]:
            files.write(as_of(fire, day), out / str(day) / f"{fire.name}.tif")


@pytest.fixture
def here(agency: Path, tmp_path: Path) -> Path:
    """A copy of the store, so that each test begins with the same."""
    shutil.copy(agency / "mlflow.db", tmp_path)
    return tmp_path


def client_of(folder: Path) -> mlflow.MlflowClient:
    return mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db", f"sqlite:///{folder}/mlflow.db")


def runs_named(folder: Path, start: str) -> list[mlflow.entities.Run]:
    client = client_of(folder)
    experiment = client.get_experiment_by_name("fcer").experiment_id
    return [run for run in client.search_runs([experiment]) if run.info.run_name.startswith(start)]


def test_the_record_is_kept_once_on_disk_in_mlflow_and_with_the_version(agency: Path, here: Path):
    call = ("verify", "--maps", agency / "maps", "--against", agency / "fires", "--out", here / "record")
    first = fcer(here, *call)
    assert first.returncode == 0, first.stderr
    assert "6 forecasts verified, 0 on record before" in first.stdout
    before = (here / "record" / "record.csv").read_bytes()
    again = fcer(here, *call)
    assert "0 forecasts verified, 6 on record before" in again.stdout
    assert (here / "record" / "record.csv").read_bytes() == before

    record = pd.read_csv(here / "record" / "record.csv")
    (run,) = runs_named(here, "record fcer-student 1 2021")
    history = client_of(here).get_metric_history(run.info.run_id, "verify/ap")
    found = {datetime.fromtimestamp(one.timestamp / 1000, UTC).date(): one.value for one in history}
    expected = record.groupby("date")["ap"].mean()
    assert len(history) == len(found) == expected.notna().sum()
    for day, value in found.items():
        assert value == pytest.approx(expected[str(day)])
    assert {one.step for one in history} == {day.timetuple().tm_yday for day in found}
    assert f"viewStateShareKey={run.info.run_id}" in first.stdout
    tags = client_of(here).get_experiment(run.info.experiment_id).tags
    view = json.loads(tags[f"mlflow.sharedViewState.{run.info.run_id}"])
    assert {chart["xAxisKey"] for chart in view["compareRunCharts"]} == {"time"}
    (charted,) = client_of(here).search_runs([run.info.experiment_id], view["searchFilter"])
    metrics = {name for chart in view["compareRunCharts"] for name in chart["selectedMetricKeys"]}
    assert metrics >= {"verify/ap", *(f"alarm/{kind}" for kind in KINDS)}
    assert charted.info.run_id == run.info.run_id
    below = client_of(here).search_runs([run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.info.run_id}'")
    assert sorted(one.info.run_name for one in below) == sorted(set(record["date"]))
    assert {one.info.status for one in (run, *below)} == {"FINISHED"}
    tags = client_of(here).get_model_version("fcer-student", "1").tags
    assert json.loads(tags["fcer.verified"])["fires"] == 3
    assert set(json.loads(tags["verified_by_fire"])) == set(record["fire"])
    assert "No alarm." in (here / "record" / "record.html").read_text()


def test_an_alarm_ends_with_3_tags_the_version_and_keeps_it_from_promotion(agency: Path, here: Path):
    """Forecasts that promise what no map can keep."""
    promised = replace(EXPECTED, scores={"nll_skill": (0.999,) * 200, "auroc": (0.999,) * 200})
    write_maps(agency, here / "maps", calibration_of("key", expected=promised))
    done = fcer(here, "verify", "--maps", here / "maps", "--against", agency / "fires", "--out", here / "out")
    assert done.returncode == 3
    (sentence,) = (line for line in done.stderr.splitlines() if "alarm" in line)
    assert (
        sentence.startswith("fcer: alarm: fcer-student 1, season 2021: since 2021-")
        and "where 200 validation fires had" in sentence
    )
    client = client_of(here)
    assert client.get_model_version("fcer-student", "1").tags["fcer.alarm"] in sentence
    (run,) = runs_named(here, "record fcer-student 1 2021")
    assert run.data.tags["fcer.alarm"] in sentence and run.info.status == "FINISHED"

    client.delete_registered_model_alias("fcer-student", "champion")
    refused = fcer(here, "promote", "--run", str(client.get_model_version("fcer-student", "1").run_id))
    assert refused.returncode == 1 and "verified forecasts raised an alarm" in refused.stderr


def test_maps_of_two_students_have_records_of_their_own(agency: Path, here: Path):
    shutil.copytree(agency / "maps", here / "maps")
    write_maps(agency, here / "maps" / "other", calibration_of("key"), student="other")
    done = fcer(here, "verify", "--maps", here / "maps", "--against", agency / "fires", "--out", here / "out")
    assert done.returncode == 0, done.stderr
    assert "maps of 2 students (fcer-student 1, student other): each has a record of its own" in done.stdout
    assert len(runs_named(here, "record ")) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--maps", "nowhere", "--against", "{fires}"], "nowhere: no such file or folder"),
        (["--maps", "{maps}"], "against: say what burnt"),
        (["--against", "{fires}"], "maps: name the forecasts"),
        (["--maps", "{maps}", "--against", "{student}"], "none of 6 maps can be verified"),
    ],
)
def test_what_cannot_be_verified_is_said_with_2(agency: Path, here: Path, given: list[str], sentence: str):
    places = {"fires": agency / "fires", "maps": agency / "maps", "student": agency / "unlike"}
    if "{student}" in given:
        synthesize(replace(SEASON, years=(2015,), seed=9), agency / "unlike", workers=1)
    done = fcer(here, "verify", *(word.format(**places) for word in given), "--out", here / "out")
    assert done.returncode == 2 and sentence in done.stderr
    assert not (here / "out" / "record.csv").exists()


REHEARSE = ("rehearse", "--threshold", "0.5", "--workers", "1")


def test_a_killed_rehearsal_goes_on_to_the_same_record(agency: Path, here: Path):
    whole = fcer(here, *REHEARSE, "--data", agency / "fires", "--out", here / "whole")
    assert whole.returncode == 0, whole.stderr
    assert "forecasts of 3 fires on" in whole.stdout
    call = (*REHEARSE, "--data", agency / "fires", "--out", here / "killed")
    process = start(here, *call)
    record = here / "killed" / "record.csv"
    deadline = time.monotonic() + 300
    while not record.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert record.exists() and record.read_bytes() != (here / "whole" / "record.csv").read_bytes()
    again = fcer(here, *call)
    assert again.returncode == 0, again.stderr
    assert record.read_bytes() == (here / "whole" / "record.csv").read_bytes()
    (run,) = runs_named(here, "rehearsal fcer-student 1 2021")  # the same rehearsal, wherever it lies
    assert "fcer.verified" not in client_of(here).get_model_version("fcer-student", "1").tags
    days = pd.read_csv(record)
    ap = days.groupby("date")["ap"].mean().dropna()
    assert len(client_of(here).get_metric_history(run.info.run_id, "verify/ap")) == len(ap)


def test_a_lost_channel_is_seen_in_the_record(agency: Path, here: Path):
    done = fcer(here, *REHEARSE, "--data", agency / "fires", "--out", here / "out", "--lose-channel", "ndvi")
    assert done.returncode in (0, 3) and "NDVI was lost from 2021-" in done.stdout
    middle = date.fromisoformat(done.stdout.split("was lost from ")[1][:10])
    record = pd.read_csv(here / "out" / "record.csv", keep_default_na=False)
    lacking = {date.fromisoformat(day) > middle for day in record.loc[record["lacking"] == "NDVI", "date"]}
    assert lacking == {True}
    other = fcer(here, *REHEARSE, "--data", agency / "fires", "--out", here / "out")
    assert other.returncode == 2 and "holds another rehearsal" in other.stderr
    wrong = fcer(here, *REHEARSE, "--data", agency / "fires", "--lose-channel", "colour")
    assert wrong.returncode == 2 and "there is no channel 'colour'" in wrong.stderr


def test_zones_are_adapted_to_verified_days_each_once(agency: Path, here: Path):
    """Zones that hold nothing: what burnt was missed, so that they grow."""
    student = shutil.copytree(agency / "student", here / "student")
    narrow = calibration_of("key", level=0.999)
    save_calibration(student, narrow)
    write_maps(agency, here / "maps", narrow)
    call = ("calibrate", "--online", "--model", student, "--maps", here / "maps", "--against", agency / "fires")
    done = fcer(here, *call)
    assert done.returncode == 0, done.stderr
    adapted = load_calibration(student, "key")
    assert adapted is not None and adapted.adapted is not None
    (rule,) = adapted.rules
    record = pd.Series([path.parent.name for path in (here / "maps").rglob("*.tif")])
    assert rule.level < 0.999 and adapted.adapted.days == record.nunique()
    assert "level 0.999 before" in done.stdout and "Over many days, on average about 20 %" in done.stdout
    (run,) = [run for run in runs_named(here, "calibrate") if run.data.tags.get("fcer.adapted") == "online"]
    history = client_of(here).get_metric_history(run.info.run_id, "adapt/level_0.2")
    assert len(history) == adapted.adapted.days and history[-1].value == pytest.approx(rule.level)
    again = fcer(here, *call)
    assert again.returncode == 2 and "no verified day with fire that is new to it" in again.stderr
    without = fcer(here, "calibrate", "--online", "--model", student)
    assert without.returncode == 2 and "give --maps and --against" in without.stderr

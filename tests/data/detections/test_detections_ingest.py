"""From detections to fires: every one accounted for, days that were seen and not seen, and what is dropped."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detection_cases import FIRST, burning, frame_of, mill, written
from fcer.cli import main
from fcer.data.catalog import open_catalog
from fcer.data.channels import ACTIVE_FIRE, feature_indices
from fcer.data.detections import DetectionSettings, Ingested, ingest, to_text
from fcer.data.detections.export import write_detections
from fcer.data.fire import Fire
from fcer.data.hdf5 import open_hdf5
from fcer.data.inspection import inspect
from fcer.data.inspection import to_text as inspection_text
from fcer.data.samples import Samples
from fcer.data.survey import survey_fire
from fcer.errors import ConfigError
from mlflow_stores import fresh_store

Ingest = Callable[..., Ingested]


@pytest.fixture
def ingested(tmp_path: Path) -> Ingest:
    def made(*frames: pd.DataFrame, layers: tuple[str, ...] = (), **chosen: object) -> Ingested:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        files = [written(folder, frame, f"{k}.csv") for k, frame in enumerate(frames)]
        return ingest(files, folder / "fires", replace(DetectionSettings(), **chosen), layers)

    return made


def only_fire(done: Ingested) -> Fire:
    (fire,) = done.fires
    return open_hdf5(fire.path)


def day(k: int) -> date:
    return FIRST + timedelta(days=k)


def masks(fire: Fire) -> np.ndarray:
    return fire.read(slice(None), (ACTIVE_FIRE,))[:, 0] > 0


MIXED = pd.concat(
    [
        burning(),
        burning(45.0, -110.0, seed=1, satellite="1", confidence="low"),
        burning(42.0, -100.0, seed=2, per_day=3),
        burning(35.0, -115.0, seed=3, type=2),
        mill(),
        frame_of(latitude=np.linspace(31, 49, 40), longitude=-90.0),
    ]
).fillna({"type": 0})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.fixed_dictionaries(
        {
            "confidence": st.sampled_from(["low", "nominal", "high"]),
            "satellites": st.sampled_from([(), ("N",), ("NOAA-20", "Suomi NPP")]),
            "bbox": st.sampled_from([(), (-125.0, 31.0, -105.0, 49.0), (170.0, 0.0, -117.0, 80.0)]),
            "dates": st.sampled_from([(), ("2020-08-01", "2020-08-05")]),
            "day": st.sampled_from(["utc", "solar"]),
            "min_detections": st.integers(1, 200),
        }
    )
)
def test_every_detection_is_read_and_dropped_by_one_rule_or_in_one_fire(ingested: Ingest, chosen: dict[str, object]):
    try:
        done = ingested(MIXED, frame_of(latitude=10.0, type=0), **chosen)
    except Exception as error:
        assert "no fire among" in str(error)
        return
    assert list(done.read.values()) == [len(MIXED), 1]
    assert sum(done.dropped.values()) + done.in_fires == len(MIXED) + 1
    assert all(n > 0 for n in done.dropped.values())


def test_the_fire_is_where_and_when_it_burnt(ingested: Ingest):
    done = ingested(MIXED)
    fire = only_fire(done)
    assert fire.name.startswith("fire_20200801_40") and fire.name.endswith("W") and fire.year == 2020
    assert fire.dates == tuple(day(k) for k in range(7))
    assert fire.lnglat == pytest.approx((-119.93, 40.055), abs=0.05)
    assert min(fire.height, fire.width) >= 128
    burnt = masks(fire)
    rows = [np.nonzero(mask)[0].mean() for mask in burnt]
    assert rows == sorted(rows, reverse=True), "it moves north, so rows fall"
    assert 40 <= burnt.sum((1, 2)).min() <= burnt.sum((1, 2)).max() <= 70
    assert set(np.unique(fire.read(slice(None), (ACTIVE_FIRE,)))) == {0, 10, 20}
    assert np.isnan(fire.read(slice(0, 1), range(ACTIVE_FIRE))).all(), "what is not given is missing"
    assert done.dropped == {
        "confidence below nominal": 420,
        "no vegetation fire (type)": 420,
        "static sources": 42,
        "alone, in no cluster": done.dropped["alone, in no cluster"],
        "in fires of fewer than 80": 42,
    }
    assert "read from 0.csv" in to_text(done) and "dropped: alone, in no cluster" in to_text(done)


def test_two_products_that_repeat_each_other_are_counted_once(ingested: Ingest):
    """The standard product goes before the near-real-time one, so the last day is whole where both have it."""
    fire = burning(confidence="n", type=0)
    again = fire.assign(
        version="2.0NRT", latitude=fire.latitude + 0.00002, acq_time=fire.acq_time.replace("1012", "1006")
    )
    once, twice = ingested(fire), ingested(again, fire)
    assert twice.dropped == {**once.dropped, "repeated": len(fire)}
    assert twice.incomplete is None
    np.testing.assert_array_equal(masks(only_fire(twice)), masks(only_fire(once)))


def test_the_last_day_of_near_real_time_files_is_never_a_label(ingested: Ingest):
    done = ingested(burning(version="2.0NRT"))
    assert (done.incomplete, done.last_full_day) == (day(6), day(5))
    fire = only_fire(done)
    assert fire.dates is not None and fire.dates[-1] == day(5)
    assert done.dropped["last day, incomplete"] == 60
    assert [f.path for f in done.active()] == [fire.path]
    whole = ingested(burning(version="2"))
    assert whole.incomplete is None and only_fire(whole).dates[-1] == day(6)


def test_a_day_that_nobody_saw_is_missing_and_no_sample_spans_it(ingested: Ingest):
    """No overpass on the fourth day; on the seventh cloud leaves two of sixty."""
    frame = burning(days=10)
    hidden = (frame.acq_date == str(day(3))) | ((frame.acq_date == str(day(6))) & (frame.index % 30 != 0))
    elsewhere = burning(47.0, -90.0, seed=5, days=10)
    for others in (frame_of(acq_date=str(day(0))), elsewhere):
        done = ingested(frame[~hidden], others)
        fire = next(f for f in done.fires if f.lnglat[0] < -100)
        assert fire.missing == (day(3), day(6))
        opened = open_hdf5(fire.path)
        assert opened.dates == tuple(day(k) for k in (0, 1, 2, 4, 5, 7, 8, 9))
        samples = Samples([opened], days=1, features=(38, 39), crop=None)
        labelled = [opened.dates[first + 1] for _, first in map(samples.locate, range(len(samples)))]
        assert labelled == [day(k) for k in (1, 2, 5, 8, 9)]


def test_days_before_and_after_belong_to_a_fire_as_far_as_the_files_go(ingested: Ingest):
    """They were looked at and no fire was seen: that is known, unlike a missing day."""
    done = ingested(burning(days=3, first=day(6)), burning(47.0, -90.0, seed=5, days=16))
    fire = next(f for f in done.fires if f.lnglat[0] < -100)
    assert (fire.days[0], fire.days[-1], fire.last_seen) == (day(2), day(12), day(8))
    burnt = masks(open_hdf5(fire.path)).any((1, 2))
    assert burnt.tolist() == [False] * 4 + [True] * 3 + [False] * 4


def test_days_by_the_sun_or_by_utc(ingested: Ingest):
    """At 120 W the sun is eight hours behind: what is seen at 01:30 UTC belongs to the afternoon before."""
    frame = burning(acq_time="0130")
    assert only_fire(ingested(frame)).dates[0] == day(0)
    assert only_fire(ingested(frame, day="solar")).dates[0] == day(-1)


def test_the_hour_after_midnight_is_24_since_0_means_no_fire(ingested: Ingest):
    hours = only_fire(ingested(burning(acq_time="0018"))).read(slice(None), (ACTIVE_FIRE,))
    assert set(np.unique(hours)) == {0, 24}


def test_static_sources_go_and_a_slow_fire_stays(ingested: Ingest):
    works = [mill(41.6 + k / 100, -87.3 + k / 90, seed=k) for k in range(3)]
    done = ingested(burning(drift_km=0.3), *works, min_detections=40)
    assert len(done.fires) == 1 and done.dropped["static sources"] == sum(map(len, works))


def test_fronts_of_one_fire_are_one_fire_and_others_are_not(ingested: Ingest):
    """A ring of fronts 9 km across: each front is dense, none is near the next, but their boxes overlap."""
    corners = [(40.0, -120.0), (40.09, -119.99), (40.01, -119.89), (40.08, -119.90)]
    long_fronts = [burning(*corner, seed=k, drift_km=1.0) for k, corner in enumerate(corners)]
    done = ingested(*long_fronts, burning(41.5, -118.0, seed=9))
    assert sorted(fire.detections for fire in done.fires) == [420, 1680]


def test_synthetic_fires_come_back_from_their_detections(small_fires: Path, tmp_path: Path):
    """Each burning pixel as a detection, and back: the same number of pixels on the same days."""
    fires = open_catalog(small_fires).fires
    count = write_detections(tmp_path / "all.csv", fires)
    assert count == sum(int(masks(fire).sum()) for fire in fires)
    back = 0
    for k, fire in enumerate(fires):
        write_detections(tmp_path / f"{k}.csv", [fire])
        if masks(fire).sum() < 20:
            continue
        chosen = DetectionSettings(min_detections=1, min_extent_km=0, near_km=50, near_days=20)
        again = only_fire(ingest([tmp_path / f"{k}.csv"], tmp_path / str(k), chosen))
        before = {d: int(mask.sum()) for d, mask in zip(fire.dates, masks(fire), strict=True) if mask.any()}
        after = {d: int(mask.sum()) for d, mask in zip(again.dates, masks(again), strict=True) if mask.any()}
        kept = set(before) & set(after)
        assert {d: before[d] for d in kept} == {d: after[d] for d in kept}
        assert len(kept) >= len(before) - 2, "but for days that were hardly seen"
        back += 1
    assert back >= 2


def test_fires_that_never_burnt_say_so_in_their_names(tmp_path: Path):
    made = ingest([written(tmp_path, burning(), "synthetic-1.csv")], tmp_path / "made", DetectionSettings())
    real = ingest([written(tmp_path, burning(), "snpp.csv")], tmp_path / "real", DetectionSettings())
    assert open_hdf5(made.fires[0].path).name.startswith("fire_synthetic_2020")
    assert made.fires[0].path.name.replace("synthetic_", "") == real.fires[0].path.name


def test_channels_that_no_detection_gives_are_told_in_one_line(tmp_path: Path):
    out = tmp_path / "real"
    ingest([written(tmp_path, burning(), "snpp.csv")], out, DetectionSettings())
    found = inspect(out, features=feature_indices("fire"), crop=32, cache=tmp_path, workers=1)
    (line,) = [line for line in inspection_text(found).splitlines() if "missing values" in line]
    assert line == "missing values: all 22 channels but active fire; choose --features fire, or ingest with --layer"


def test_a_folder_holds_the_fires_of_one_source(tmp_path: Path):
    file = written(tmp_path, burning())
    first = ingest([file], tmp_path / "fires", DetectionSettings())
    digest = survey_fire(only_fire(first)).digest
    assert survey_fire(only_fire(ingest([file], tmp_path / "fires", DetectionSettings()))).digest == digest
    with pytest.raises(ConfigError, match="holds the fires of other detections or settings; choose another --out"):
        ingest([file], tmp_path / "fires", DetectionSettings(confidence="low"))
    (tmp_path / "other" / "2020").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds fires that were not made by `fcer ingest`; choose another --out"):
        ingest([file], tmp_path / "other", DetectionSettings())


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--bbox", "-125", "31", "-105"], "bbox: -125 31 -105 is no box; give west, south, east, north in degrees"),
        (["--bbox", "-125", "49", "-105", "31"], "bbox: -125 49 -105 31 is no box"),
        (["--dates", "2020-10-02", "2020-09-26"], "dates: 2020-10-02 2020-09-26 is no period"),
        (["--satellites", "Terra"], "satellites: 'Terra' is not one of Suomi NPP, NOAA-20, NOAA-21"),
        (
            ["--min-detections", "9999"],
            "no fire among 420 detections; 420 are dropped as 'in fires of",
        ),
        (["--layer", "height=dem.tif"], "layer: there is no channel 'height'; there are viirs_m11"),
        (["--layer", "elevation=none.tif"], "none.tif: no such file; give --layer elevation=FILE a raster"),
        (["--layer", "active_fire=fire.tif"], "layer: active fire comes from the detections; leave it out"),
    ],
)
def test_wrong_options_get_one_sentence(tmp_path: Path, options: list[str], wrong: str, sentence: Callable[..., str]):
    assert wrong in sentence(written(tmp_path, burning()), *options)


@pytest.mark.slow
def test_the_command_says_what_became_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", fresh_store(tmp_path))
    files = [written(tmp_path, burning(satellite=s, seed=k), f"{s}.csv") for k, s in enumerate("N1")]
    given = ["--detections", *map(str, files), "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    assert main(["ingest", *given]) == 0
    said = capsys.readouterr().out
    assert "in 1 fires" in said and "within a pixel of NOAA-20's, same day" in said and "fingerprint" in said
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"2020", "detections.json", "ingest.json", "overview.png"}

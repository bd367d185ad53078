"""Years that calibrate each other: zones and probabilities of every method, in the files of an evaluation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fcer.core.recalibration import NONE, Recalibration
from fcer.core.risk_control import cross_bound
from fcer.errors import FcerWarning
from fcer.evaluation import Results, evaluate
from fcer.evaluation.calibration_table import calibration_rows, own_probabilities
from fcer.evaluation.guarantees import Guarantees, cross_fitted, with_guarantees
from fcer.maps.predicted_maps import PredictedMaps
from fcer.tracking.guarantee_curves import guarantee_curves
from report_cases import some_maps

MISSES = (0.02, 0.2)


@pytest.fixture(scope="module")
def years() -> list[PredictedMaps]:
    return [some_maps(year, n_images=40) for year in (2018, 2019, 2020)]


@pytest.fixture(scope="module")
def bare(years: list[PredictedMaps]) -> Results:
    return evaluate(years, bootstrap=20, progress=None)


@pytest.fixture(scope="module")
def found(years: list[PredictedMaps], bare: Results) -> Guarantees:
    guarantees = cross_fitted(years, bare, MISSES, Recalibration("prior", weight=2.0))
    assert guarantees is not None
    return guarantees


def test_each_year_is_held_to_zones_of_all_others(found: Guarantees, bare: Results):
    table = found.zones.table
    assert set(table["method"]) == set(bare.settings.own_methods) and set(table["fitted"]) == {"cross"}
    one = table[table["year"] == 2019]
    assert set(one["calibration"]) == {"2018 2020"}
    some = one[one["nominal_miss"] == 0.2]
    assert some["area_km2"].notna().all() and one[one["nominal_miss"] == 0.02]["area_km2"].isna().all()
    assert (some["bound"] > 0.2).all(), "whatever the models: more than is promised for models that are alike"


def test_the_bound_of_cross_fitting():
    losses, group = np.array([[0.4, 0.0], [0.0, 0.0], [0.2, 0.0]]), ["a", "a", "b"]
    assert cross_bound(losses, 0, group) == pytest.approx((0.6 + 2) / (3 + 2))
    assert cross_bound(losses, 1, ["a", "b", "c"]) == pytest.approx(1 / 4)


def test_raw_and_calibrated_stand_side_by_side_in_every_region(found: Guarantees, bare: Results):
    table = found.calibration
    assert sorted(table["radius_px"].unique()) == sorted(bare.sweep["radius_px"].unique())
    both = table.merge(bare.sweep, on=["year", "method", "radius_px"], suffixes=("", "_swept"))
    assert len(both) == len(table)
    for name in ("brier", "nll", "brier_skill", "nll_skill", "n_pixels"):
        np.testing.assert_allclose(both[name], both[f"{name}_swept"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("recalibration", [NONE, Recalibration("platt", scale=0.5, shift=-1.0)])
def test_calibrated_losses_are_those_of_calibrated_maps(years: list[PredictedMaps], recalibration: Recalibration):
    maps = years[0]
    rows = calibration_rows(maps, {"student": recalibration}, [0, 4, np.inf], "validation")
    prob = recalibration.apply(maps.prob("student", slice(0, maps.shape[0])))
    stacks = {"y": maps.fire(slice(0, maps.shape[0])).astype(np.uint8), "student_prob": prob}
    stacks["student_unc"] = maps.unc("student", slice(0, maps.shape[0]))
    again = evaluate(PredictedMaps.from_arrays(stacks, year=2018), radii=[0, 4], bootstrap=0, progress=None).sweep
    own = again[again["method"] == "student"]
    for name in ("brier", "nll", "ece"):
        np.testing.assert_allclose(rows[f"{name}_calibrated"], own[name], rtol=1e-9)


def test_probabilities_that_another_method_has_are_calibrated_once(years: list[PredictedMaps]):
    maps = years[0]
    twin = {f"twin_{kind}": maps.arrays[f"student_{kind}"] for kind in ("prob", "unc")}
    more = replace(maps, arrays={**maps.arrays, **twin}, methods=(*maps.methods, "twin"))
    assert own_probabilities([more]) == list(maps.methods)


def test_they_are_written_read_and_removed_with_the_evaluation(bare: Results, found: Guarantees, tmp_path: Path):
    results = with_guarantees(bare, found)
    area = results.tests[results.tests["metric"].str.startswith("zone_area/")]
    assert set(area["scope"]) == {"2018", "2019", "2020", "pooled"} or area.empty
    results.write(tmp_path)
    again = Results.read(tmp_path)
    assert again.zones is not None and again.calibration is not None and again.zones_by_fire is not None
    pd.testing.assert_frame_equal(again.zones, results.zones, check_dtype=False)
    pd.testing.assert_frame_equal(again.calibration, results.calibration, check_dtype=False)
    assert {path.name for path in Results.files(tmp_path)} >= {"zones.csv", "calibration.csv"}
    bare.write(tmp_path)
    assert not (tmp_path / "zones.csv").exists(), "those of an earlier evaluation"
    assert Results.read(tmp_path).zones is None


def test_a_table_of_another_evaluation_is_no_part_of_this_one(bare: Results, found: Guarantees, tmp_path: Path):
    bare.write(tmp_path)
    found.zones.table.to_csv(tmp_path / "zones.csv", index=False)
    assert Results.read(tmp_path).zones is None


def test_metrics_have_the_promise_as_step(bare: Results, found: Guarantees):
    results = with_guarantees(bare, found)
    rows = list(guarantee_curves(results, "student", 2019))
    zones = {(name, step): value for name, value, step in rows}
    expected = found.zones.table.query("year == 2019 and method == 'student' and family == 'threshold'")
    at = expected[expected["nominal_miss"] == 0.2].iloc[0]
    assert zones["zone/miss", 20] == at["realised_miss"] and zones["zone/area_km2", 20] == at["area_km2"]
    assert ("zone/miss", 2) not in zones, "too few fires to promise that"
    assert {step for name, _, step in rows if name == "calibrated/nll"} == {-1, *range(11)}
    assert not list(guarantee_curves(bare, "student", 2019))


def test_one_year_calibrates_nothing(years: list[PredictedMaps], bare: Results):
    assert cross_fitted(years[:1], bare, MISSES) is None
    assert cross_fitted([replace(maps, fire_id=None) for maps in years], bare, MISSES) is None
    lone = [replace(maps, fire_id=np.full(maps.shape[0], "one")) for maps in years[:2]]
    with pytest.warns(FcerWarning, match="no zones by other years' fires: .* give validation maps of two fires"):
        assert cross_fitted(lone, bare, MISSES) is None

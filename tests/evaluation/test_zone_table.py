"""Zones of predicted maps: measured by fire, calibrated on some, held to others."""

import numpy as np
import pandas as pd
import pytest

from fcer.core.recalibration import Recalibration
from fcer.core.regions import fire_region
from fcer.core.statistics import wilcoxon_test
from fcer.core.zones import FAMILIES, KAPPAS, ZoneFamily, draw_zone
from fcer.errors import FcerWarning, InputError, PredictionsError
from fcer.evaluation.recalibrated import calibrated_maps, choose_from_maps, near_fire_counts
from fcer.evaluation.zone_table import ZoneTables, area_tests, zone_tables
from fcer.evaluation.zones import fit_family, fit_rules, measure_zones
from fcer.maps.predicted_maps import PredictedMaps
from simulated_fires import mean_of_days, simulate_fires

PIXEL_KM2 = 0.375**2


def maps_of(n_fires: int, year: int, **changes: np.ndarray) -> PredictedMaps:
    arrays = simulate_fires(n_fires, np.random.default_rng(year)).arrays()
    noise = np.random.default_rng(year + 1).random(arrays["y"].shape).astype(np.float32)
    worse = {"noisy_prob": (arrays["student_prob"] + noise) / 2, "noisy_unc": noise}
    return PredictedMaps.from_arrays({**arrays, **worse, **changes}, year=year)


@pytest.fixture(scope="module")
def calibration() -> PredictedMaps:
    return maps_of(40, 2020)


@pytest.fixture(scope="module")
def held_out() -> PredictedMaps:
    return maps_of(30, 2021)


@pytest.fixture(scope="module")
def tables(calibration: PredictedMaps, held_out: PredictedMaps):
    return zone_tables([calibration], held_out, ["student", "noisy"], n_draws=200)


def test_numbers_stay_numbers_beside_a_table_without_zones(tables, calibration: PredictedMaps):
    with pytest.warns(FcerWarning, match="too few fires"):
        nothing = zone_tables([calibration], calibration, ["student"], misses=[0.001], families=["margin"], n_draws=0)
    joined = ZoneTables.join([tables, nothing])
    assert len(joined.by_fire) == len(tables.by_fire) and len(joined.table) == len(tables.table) + 1
    numbers = ["miss", "area_km2", "burnt_km2", "nominal_miss"]
    assert (joined.by_fire[numbers].dtypes == "float64").all(), "what paired tests compute with"


@pytest.mark.parametrize("family", [ZoneFamily("threshold"), ZoneFamily("margin"), ZoneFamily("widened", 2.0)])
def test_measures_are_those_of_zones_drawn_image_by_image(calibration: PredictedMaps, family: ZoneFamily):
    found = measure_zones(calibration, "student", family, Recalibration("prior", weight=3.0))
    everything = slice(0, calibration.shape[0])
    fire = calibration.fire(everything)
    prob = Recalibration("prior", weight=3.0).apply(calibration.prob("student", everything))
    unc = calibration.unc("student", everything)
    _, owner = np.unique(calibration.fire_id, return_inverse=True)
    places = [100, 150, family.levels.size - 1]
    miss, area = np.empty((2, len(fire), len(places)))
    for i in range(len(fire)):
        for j, place in enumerate(places):
            mask = draw_zone(family.score(prob[i], unc[i]), family.levels[place]).mask
            area[i, j] = mask.sum() * PIXEL_KM2
            miss[i, j] = (fire[i] & ~mask).sum() / fire[i].sum() if fire[i].any() else np.nan
    np.testing.assert_allclose(found.miss[:, places], mean_of_days(miss, owner), atol=1e-12)
    np.testing.assert_allclose(found.area_km2[:, places], mean_of_days(area, owner), atol=1e-9)
    burnt = mean_of_days(fire.sum(axis=(1, 2))[:, None] * PIXEL_KM2, owner)
    np.testing.assert_allclose(found.burnt_km2, burnt[:, 0], atol=1e-9)
    assert not found.has_burnt.all() and np.isnan(found.miss[~found.has_burnt]).all(), "quiet fires are not a loss of 0"


def test_padding_is_not_measured(calibration: PredictedMaps):
    raw = {name: np.asarray(array[:]) for name, array in calibration.arrays.items()}
    padded = {name: np.pad(array, ((0, 0), (0, 3), (0, 5))) for name, array in raw.items()}
    for name in padded:
        if name != "y":  # what stands in the padding must not matter
            padded[name][:, 20:] = padded[name][:, :, 20:] = 1
    size = np.full((len(raw["y"]), 2), 20)
    larger = PredictedMaps.from_arrays({**padded, "fire_id": calibration.fire_id, "size": size}, year=2020)
    for name in FAMILIES:
        expected, found = (measure_zones(maps, "student", ZoneFamily(name)) for maps in (calibration, larger))
        np.testing.assert_array_equal(found.miss, expected.miss)
        np.testing.assert_array_equal(found.area_km2, expected.area_km2)
    counts = [near_fire_counts(maps, "student", 4.0).pixels for maps in (calibration, larger)]
    np.testing.assert_array_equal(*counts)


def test_the_table_has_a_row_for_each_method_family_and_miss(tables):
    table = tables.table
    assert list(table.columns[:7]) == [
        *("year", "method", "family", "nominal_miss", "realised_miss", "area_km2", "fires"),
    ]
    assert len(table) == 2 * 3 * 3 and not table.drop(columns="level").isna().any().any()
    assert (table["year"] == 2021).all() and (table["calibration"] == "2020").all()
    assert (table["bound"] <= table["nominal_miss"] + 1e-9).all()
    assert table["realised_miss"].between(table["miss_low"] - 1e-9, table["miss_high"] + 1e-9).all()
    assert table["area_km2"].between(table["area_low"] - 1e-9, table["area_high"] + 1e-9).all()
    np.testing.assert_allclose(table["times_burnt"], table["area_km2"] / table["burnt_km2"])
    assert (table["area_2n_km2"] <= table["area_km2"] + 1e-9).all()
    assert (table["exceeds"] == (table["miss_low"] > table["nominal_miss"])).all()
    by_miss = table.sort_values("nominal_miss").groupby(["method", "family"])
    assert all(part["area_km2"].is_monotonic_decreasing for _, part in by_miss), "a larger miss needs a smaller zone"
    means = tables.by_fire.groupby(["method", "family", "nominal_miss"])[["miss", "area_km2"]].mean().reset_index()
    merged = table.merge(means, on=["method", "family", "nominal_miss"], suffixes=("", "_mean"))
    np.testing.assert_allclose(merged["realised_miss"], merged["miss"])
    np.testing.assert_allclose(merged["area_km2"], merged["area_km2_mean"])


def test_the_area_of_zones_is_tested_fire_by_fire(tables):
    tests = area_tests(tables.by_fire, [("student", "noisy")], n_draws=200)
    assert tests["scope"].unique().tolist() == ["2021", "pooled"] and (tests["unit"] == "fire").all()
    assert set(tests["metric"]) == {f"zone_area/{name}" for name in FAMILIES}
    row = tests[(tests["metric"] == "zone_area/threshold") & (tests["scope"] == "2021")].iloc[0]
    part = tables.by_fire[(tables.by_fire["family"] == "threshold") & (tables.by_fire["nominal_miss"] == 0.1)]
    area = part.pivot(index="fire_id", columns="method", values="area_km2")
    expected = wilcoxon_test(area["noisy"], area["student"])
    assert row["p"] == expected.p < 1e-4 and row["median_delta"] == expected.median_delta > 0
    assert row["n"] == 30 and row["ci_low"] <= row["median_delta"] <= row["ci_high"]
    assert (tests["p_holm"] >= tests["p"]).all()


def test_kappa_is_chosen_on_fires_that_do_not_calibrate(calibration: PredictedMaps):
    all_fires = measure_zones(calibration, "student", ZoneFamily("threshold"))
    fitted = fit_family([calibration], "student", "widened")
    n_design = round(0.3 * all_fires.has_burnt.sum())
    assert len(fitted.fire_id) == len(all_fires.fire_id) - n_design
    assert fitted.family.kappa in KAPPAS
    rule = fit_rules(fitted, [0.2])[0]
    assert rule.n_fires == all_fires.has_burnt.sum() - n_design


def test_uncertainty_that_knows_where_fire_escapes_makes_zones_smaller():
    def escaping(year: int) -> PredictedMaps:
        maps = maps_of(60, year)
        everything = slice(0, maps.shape[0])
        fire, prob = maps.fire(everything), maps.prob("student", everything)
        arrays = {"y": fire.astype(np.uint8), "knowing_prob": prob, "knowing_unc": 0.5 * fire.astype(np.float32)}
        return PredictedMaps.from_arrays({**arrays, "fire_id": maps.fire_id}, year=year)

    tables = zone_tables([escaping(2020)], escaping(2021), ["knowing"], families=["threshold", "widened"], misses=[0.1])
    threshold, widened = tables.table["area_km2"]
    assert tables.table["kappa"][1] > 0 and widened < 0.5 * threshold


def test_several_files_calibrate_together(calibration: PredictedMaps, held_out: PredictedMaps):
    other = maps_of(10, 2019)
    alone = [zone_tables([m], held_out, ["student"], families=["margin"], misses=[0.2]) for m in (calibration, other)]
    both = zone_tables([calibration, other], held_out, ["student"], families=["margin"], misses=[0.2])
    fires = [found.table["n_calibration_fires"][0] for found in (*alone, both)]
    assert fires[2] == fires[0] + fires[1] and both.table["calibration"][0] == "2020 2019"


def test_one_fire_alone_has_no_interval_and_exceeds_nothing(calibration: PredictedMaps):
    one = maps_of(1, 2022, student_prob=np.zeros_like(maps_of(1, 2022).arrays["student_prob"]))
    (row,) = zone_tables([calibration], one, ["student"], families=["threshold"], misses=[0.2]).table.to_dict("records")
    assert row["realised_miss"] == 1 and np.isnan(row["miss_low"]) and not row["exceeds"]


def test_too_few_fires_leave_a_row_without_a_zone(held_out: PredictedMaps):
    few = maps_of(8, 2018)
    with pytest.warns(FcerWarning, match=r"too few fires to guarantee a miss of 0.05 of threshold zones \(\d fires\)"):
        table = zone_tables([few], held_out, ["student"], families=["threshold"], misses=[0.05, 0.3]).table
    assert table["realised_miss"].isna().tolist() == [True, False]
    with pytest.raises(InputError, match="the smallest possible is"):
        fit_rules(fit_family([few], "student", "threshold"), [0.05])
    with pytest.raises(InputError, match="a miss of 0 cannot be asked for"):
        zone_tables([few], held_out, ["student"], families=["threshold"], misses=[0.0])


def test_bad_calibration_maps_are_a_sentence_each(calibration: PredictedMaps):
    with pytest.raises(InputError, match="no validation maps of student to calibrate zones on; predict"):
        fit_family([], "student", "threshold")
    with pytest.raises(InputError, match="no validation maps of student to calibrate it on; predict"):
        choose_from_maps([], "student", 4.0)
    raw = {name: np.asarray(array[:]) for name, array in calibration.arrays.items()}
    with pytest.raises(PredictionsError, match="predicted maps: no array fire_id; add it"):
        measure_zones(PredictedMaps.from_arrays(raw, year=2020), "student", ZoneFamily("margin"))
    one = PredictedMaps.from_arrays({**raw, "fire_id": np.full(len(raw["y"]), "a")}, year=2020)
    with pytest.raises(InputError, match="one calibration fire guarantees nothing"):
        fit_rules(measure_zones(one, "student", ZoneFamily("threshold")))
    with pytest.raises(InputError, match="there is 1 fire with burnt pixels"):
        choose_from_maps([one], "student", 4.0)
    quiet = measure_zones(calibration, "student", ZoneFamily("threshold"))
    with pytest.raises(InputError, match="no calibration fire has burnt pixels"):
        fit_rules(quiet.take(~quiet.has_burnt))


def test_calibrated_maps_stand_beside_the_raw_ones(calibration: PredictedMaps):
    recalibration = choose_from_maps([calibration], "noisy", 4.0).recalibration
    both = calibrated_maps(calibration, {"noisy": recalibration})
    assert both.methods == ("student", "noisy", "noisy_calibrated")
    raw, after = (both.prob(method, slice(3, 9)) for method in ("noisy", "noisy_calibrated"))
    np.testing.assert_array_equal(after, recalibration.apply(raw))
    np.testing.assert_array_equal(both.unc("noisy_calibrated", slice(3, 9)), both.unc("noisy", slice(3, 9)))


def test_counts_are_of_pixels_near_the_forecasts_fire(calibration: PredictedMaps):
    counts = near_fire_counts(calibration, "student", 2.0)
    everything = slice(0, calibration.shape[0])
    fire, prob = calibration.fire(everything), calibration.prob("student", everything)
    regions = [fire_region(p > 0.5 if (p > 0.5).any() else p == p.max(), 2.0) for p in prob]
    near, burnt = (np.array([mask.sum() for mask in masks]) for masks in (regions, regions & fire))
    by_fire = pd.DataFrame({"id": calibration.fire_id, "near": near, "burnt": burnt}).groupby("id").sum()
    np.testing.assert_array_equal(counts.pixels.sum(axis=1), by_fire["near"])
    np.testing.assert_array_equal(counts.burnt.sum(axis=1), by_fire["burnt"])

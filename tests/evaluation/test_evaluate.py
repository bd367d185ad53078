import json
import math
import re
import sys

import numpy as np
import pandas as pd
import pytest

from fcer.core import asd_loss, auroc_score, wilcoxon_test
from fcer.errors import ConfigError, PredictionsError, UndefinedMetricWarning
from fcer.evaluation import Results, evaluate, evaluate_files
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from plain_fcer import METHODS, RADII, plain_evaluation, plain_region

TABLES = [
    *("sweep", "segmentation", "per_image", "tests", "anchor", "intervals", "sensitivity", "reliability"),
    *("corp", "own_errors", "risk_coverage"),
]


def some_arrays(seed: int = 0, methods: tuple[str, ...] = METHODS, n_images: int = 12, size: int = 30):
    """Fires with a rough edge, images without fire among them, and methods that are wrong here and there."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    centre = rng.uniform(5, size - 5, (2, n_images, 1, 1))
    inside = rng.uniform(3, 6, (n_images, 1, 1)) - np.hypot(rows - centre[0], columns - centre[1])
    fire = inside + rng.standard_normal(inside.shape) > 0
    fire[3] = False
    arrays = {"y": fire.astype(np.uint8), "fire_id": np.array([f"{i // 3:03d}" for i in range(n_images)])}
    for method in methods:
        logit = inside + rng.standard_normal(inside.shape) * 1.5
        prob = 1 / (1 + np.exp(-logit))
        unc = np.round(4 * prob * (1 - prob) * rng.uniform(0.3, 1, prob.shape), 2)
        arrays |= {f"{method}_prob": prob.astype(np.float32), f"{method}_unc": unc.astype(np.float32)}
    return arrays


def some_maps(year: int = 2018, **options) -> PredictedMaps:
    return PredictedMaps.from_arrays(some_arrays(seed=year, **options), year=year)


@pytest.fixture(scope="module")
def results() -> Results:
    return evaluate([some_maps(2018), some_maps(2019)], bootstrap=200)


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_an_evaluation_by_the_book(tmp_path, monkeypatch, suffix, in_memory):
    arrays = some_arrays(n_images=40)
    path = tmp_path / f"predictions_2018{suffix}"
    write_maps(path, PredictedMaps.from_arrays(arrays, year=2018))
    if not in_memory:
        monkeypatch.setattr(sys.modules["fcer.evaluation.evaluate"], "_IN_MEMORY_BYTES", 0)
    found = evaluate_files([path], bootstrap=0)
    expected = plain_evaluation({name: array for name, array in arrays.items() if name != "fire_id"})
    segmentation = found.segmentation.set_index("method").loc[list(METHODS)]
    np.testing.assert_allclose(segmentation["ap"], expected["ap"], atol=1e-12)
    np.testing.assert_allclose(segmentation["asd_m"], expected["asd_m"], atol=1e-9)
    for method in METHODS:
        curve = found.sweep[found.sweep["method"] == method]
        assert curve["radius_px"].tolist() == list(RADII)
        np.testing.assert_allclose(curve[["auroc", "auprc", "brier", "nll"]], expected[f"sweep {method}"], atol=1e-12)
        images = found.per_image[found.per_image["method"] == method]
        np.testing.assert_allclose(images[["auroc", "auprc"]], expected[f"images {method}"], atol=1e-12)
    for metric in ("auroc", "auprc"):
        chosen = found.tests.query("metric == @metric and scope == 'pooled' and unit == 'image' and b == 'ensemble'")
        np.testing.assert_allclose(chosen["p"], expected[f"p {metric}"])


def test_result_files_have_the_promised_columns(results, tmp_path):
    results.write(tmp_path)
    promised = {
        "sweep": "year method radius_px radius_m auroc auprc brier nll n_pixels n_errors prevalence "
        "auroc_within auroc_alarms auroc_missed false_alarm_share brier_skill nll_skill",
        "segmentation": "year method ap precision recall asd_m asd_images asd_common_m fire_images missed",
        "per_image": "year index fire_id method auroc auprc auroc_within",
    }
    for name, columns in promised.items():
        header = (tmp_path / f"{name}.csv").read_text().splitlines()[0].split(",")
        assert header[: len(columns.split())] == columns.split()
    assert ",inf,inf," in (tmp_path / "sweep.csv").read_text()
    first = json.loads((tmp_path / "tests.json").read_text())[0]
    fields = "metric scope unit a b n n_nonzero w_plus w_minus p rank_biserial median_delta"
    assert list(first)[:12] == fields.split()
    assert {p.suffix for p in tmp_path.iterdir()} == {".csv", ".json"}


def test_results_survive_a_round_trip(results, tmp_path):
    results.write(tmp_path / "out")
    again = Results.read(tmp_path / "out")
    assert again.settings == results.settings
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(results, name), check_exact=True)
    assert again.summary() == results.summary()
    assert again.per_image["fire_id"].iloc[0] == "000"


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(PredictionsError, match="no finished evaluation there; run fcer evaluate --out"):
        Results.read(tmp_path)


@pytest.mark.parametrize("name", ["own_errors.csv", "risk_coverage.csv", "tests.json"])
def test_reading_a_folder_that_lacks_a_table(results, tmp_path, name):
    results.write(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(PredictionsError) as refused:
        Results.read(tmp_path)
    assert str(refused.value) == f"{tmp_path}: {name} is missing; run fcer evaluate --out {tmp_path} again"


def test_a_method_whose_name_is_a_number(tmp_path):
    evaluate(some_maps(methods=("1", "02")), bootstrap=0).write(tmp_path)
    assert Results.read(tmp_path).sweep["method"].unique().tolist() == ["1", "02", "probability"]


def test_own_errors_and_risk_of_each_year(results):
    assert list(results.own_errors) == ["year", "method", "auroc", "auprc", "prevalence", "n_pixels", "n_errors"]
    assert set(results.own_errors["method"]) == set(METHODS), "a control has no probability of its own"
    both = results.own_errors.merge(results.anchor, on=["year", "method"], suffixes=("", "_shared"))
    student, ensemble = (both[both["method"] == method] for method in METHODS)
    for column in ("auroc", "auprc", "prevalence", "n_pixels", "n_errors"):
        # the student is the reference: the shared errors are its own
        assert (student[column] == student[f"{column}_shared"]).all()
    assert (ensemble["n_errors"] != ensemble["n_errors_shared"]).any()
    arrays = some_arrays(seed=2018)
    region = np.array([plain_region(fire, 4) for fire in arrays["y"].astype(bool)])
    wrong = ((arrays["ensemble_prob"] > 0.5) != arrays["y"])[region]
    found = ensemble[ensemble["year"] == 2018].iloc[0]
    assert (found["n_pixels"], found["n_errors"]) == (region.sum(), wrong.sum())
    assert found["auroc"] == auroc_score(wrong, arrays["ensemble_unc"][region])
    curves = results.risk_coverage.groupby(["year", "method"], sort=False)
    assert (curves.size() == 100).all()
    last = curves.last().reset_index().merge(results.anchor, on=["year", "method"])
    np.testing.assert_allclose(last["risk"], last["prevalence"])


def test_a_method_without_errors_of_its_own_is_named():
    arrays = some_arrays()
    arrays["ensemble_prob"] = arrays["y"].astype(np.float32)
    with pytest.warns(UndefinedMetricWarning, match="in 2018, for the own errors of ensemble, for radius 4:"):
        found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=0)
    assert found.own_errors.set_index("method")["auroc"].isna().to_dict() == {"student": False, "ensemble": True}


def test_tests_by_year_and_pooled_by_image_and_fire(results):
    keys = [tuple(row) for row in results.tests[["a", "b", "scope", "unit", "metric"]].to_numpy()]
    scopes, metrics = ("2018", "2019", "pooled"), ("auroc", "auprc", "auroc_within")
    pairs = [("student", "ensemble"), ("student", "probability"), ("ensemble", "probability")]
    assert keys == [(*p, s, u, m) for p in pairs for s in scopes for u in ("image", "fire") for m in metrics]
    images = results.per_image.pivot(index=["year", "fire_id", "index"], columns="method", values="auroc")
    by_fire = images.groupby(level=["year", "fire_id"]).mean()
    expected = wilcoxon_test(by_fire["student"], by_fire["ensemble"])
    row = results.tests.query("scope == 'pooled' and unit == 'fire' and metric == 'auroc'").iloc[0]
    assert row["n"] == 8
    for name, value in expected._asdict().items():
        assert row[name] == value
    assert row["ci_low"] <= row["median_delta"] <= row["ci_high"]


def test_holm_covers_what_one_method_is_tested_for():
    found = evaluate(some_maps(methods=("student", "ensemble", "random", "zeta")), bootstrap=0)
    assert found.settings.controls == ("random", "probability")
    families = found.tests.groupby(["scope", "unit", "a", found.tests["b"].isin(found.settings.controls)])
    sizes = {len(family) for (_, _, a, _), family in families if a == "student"}
    assert sizes == {6}, "two other methods, or two controls, and three metrics"
    for _, family in families:
        smallest = family["p"].min()
        assert family["p_holm"].min() == min(1, smallest * len(family))
        assert (family["p_holm"] >= family["p"]).all()


def test_student_comes_first_whatever_the_reference():
    found = evaluate(some_maps(methods=("zeta", "ensemble", "student")), reference="zeta", bootstrap=0)
    tests = found.tests[found.tests["b"] != "probability"]
    pairs = list(dict.fromkeys(zip(tests["a"], tests["b"], strict=True)))
    assert pairs == [("student", "zeta"), ("student", "ensemble"), ("zeta", "ensemble")]
    assert found.settings.reference == "zeta"


@pytest.mark.parametrize("methods, reference", [(("ensemble", "student"), "student"), (("mine", "theirs"), "mine")])
def test_the_default_reference(methods, reference):
    assert evaluate(some_maps(methods=methods), bootstrap=0).settings.reference == reference


def test_one_method_alone_is_tested_against_its_own_probability_only():
    found = evaluate(some_maps(methods=("mine",)), bootstrap=50)
    assert (found.sweep["method"] == "mine").sum() == 12
    assert set(found.tests["b"]) == {"probability"}
    assert found.sensitivity.empty
    assert "there is no other method to compare it with" in found.summary()


def test_errors_of_the_reference_are_everyones():
    arrays = some_arrays()
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), reference="ensemble", bootstrap=0)
    on_fire = arrays["y"].any(axis=(1, 2))
    errors = np.count_nonzero(((arrays["ensemble_prob"] > 0.5) != arrays["y"])[on_fire])
    assert found.sweep.query("radius_px == inf")["n_errors"].tolist() == [errors] * 3


def test_mean_and_population_deviation_over_years(results):
    means = results.over_years("segmentation").set_index("method")
    student = results.segmentation.query("method == 'student'")
    assert means.loc["student", "ap"] == pytest.approx(student["ap"].mean())
    assert means.loc["student", "ap_std"] == pytest.approx(np.std(student["ap"]))
    curve = results.over_years("sweep").query("method == 'student' and radius_px == inf")
    values = results.sweep.query("method == 'student' and radius_px == inf")["auroc"]
    assert curve["auroc"].item() == pytest.approx(values.mean())
    assert curve["auroc_std"].item() == pytest.approx(np.std(values))


def test_intervals_hold_what_they_are_about(results):
    table = results.intervals
    assert set(table["scope"]) == {"2018", "2019", "mean"}
    metrics = {"ap", "precision", "recall", "iou", "f1", "asd_m", "asd_common_m"}
    ranked = {"auroc", "auprc", "auroc_within"}
    assert set(table["metric"]) == metrics | ranked | {"brier", "nll", "brier_skill", "nll_skill"}
    assert set(table[table["a"] == "probability"]["metric"]) == ranked
    assert (table["ci_low"] <= table["ci_high"]).all()
    one = table.query("scope == '2018' and metric == 'auroc'").set_index(["a", "b"])["value"]
    anchor = results.anchor.query("year == 2018").set_index("method")["auroc"]
    assert one["student", ""] == anchor["student"]
    assert one["student", "ensemble"] == pytest.approx(anchor["student"] - anchor["ensemble"])
    inside = (table["ci_low"] <= table["value"]) & (table["value"] <= table["ci_high"])
    assert inside.mean() > 0.95


def test_the_same_seed_makes_the_same_numbers(results):
    again = evaluate([some_maps(2018), some_maps(2019)], bootstrap=200)
    other = evaluate([some_maps(2018), some_maps(2019)], bootstrap=200, seed=1)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(results, name), check_exact=True)
    assert (other.intervals["ci_low"] != results.intervals["ci_low"]).any()
    pd.testing.assert_frame_equal(other.sweep, results.sweep)


@pytest.mark.filterwarnings("ignore:AUROC within the predicted class is undefined")
@pytest.mark.parametrize("anchor, pixels", [(2.5, 2.5), ("1125m", 3.0), ("4", 4.0), (0, 0.0)])
def test_the_anchor_in_pixels_and_metres(anchor, pixels):
    found = evaluate(some_maps(), anchor=anchor, bootstrap=0)
    assert found.settings.anchor_px == pixels
    assert set(found.anchor["radius_px"]) == {pixels}
    # whatever the anchor, the sweep is the one that was asked for
    assert found.sweep["radius_px"].unique().tolist() == list(RADII)


@pytest.mark.filterwarnings("ignore:AUROC within the predicted class is undefined")
def test_the_anchor_of_the_ensemble():
    arrays = some_arrays()
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), anchor="auto", bootstrap=0)
    images = [i for i in range(12) if i != 3]
    expected = np.mean([asd_loss(arrays["ensemble_prob"][i] > 0.5, arrays["y"][i]) for i in images])
    assert found.settings.anchor_px == pytest.approx(expected)
    assert found.settings.anchor_from == "the mean ASD of ensemble"
    assert (
        found.sensitivity.set_index("anchor").loc["ASD of ensemble", "radius_px"].tolist()
        == [found.settings.anchor_px] * 3
    )


@pytest.mark.filterwarnings("ignore:AUROC within the predicted class is undefined")
def test_the_anchor_of_the_reference_where_there_is_no_ensemble():
    found = evaluate(some_maps(methods=("a", "b")), anchor="auto", reference="b", bootstrap=0)
    assert found.settings.anchor_from == "the mean ASD of b"
    assert "the mean ASD of b" in found.summary()


def test_sensitivity_repeats_the_comparison(results):
    table = results.sensitivity[results.sensitivity["b"] == "ensemble"]
    assert list(dict.fromkeys(table["anchor"])) == [
        "anchor",
        *(f"{factor} x anchor" for factor in ("0.5", "0.75", "1.25", "1.5", "2")),
        "ASD of student",
        "ASD of ensemble",
    ]
    at_anchor = table[table["anchor"] == "anchor"].set_index("metric")
    pooled = results.tests.query("scope == 'pooled' and unit == 'image' and b == 'ensemble'").set_index("metric")
    for metric in ("auroc", "auprc", "auroc_within"):
        assert at_anchor.loc[metric, "p"] == pooled.loc[metric, "p"]
    twice = table.query("anchor == '2 x anchor' and metric == 'auroc'").iloc[0]
    other = evaluate([some_maps(2018), some_maps(2019)], anchor=8, bootstrap=0)
    expected = other.tests.query("scope == 'pooled' and unit == 'image' and metric == 'auroc'").iloc[0]
    assert twice["p"] == expected["p"]
    assert twice["a_score"] == pytest.approx(other.anchor.query("method == 'student'")["auroc"].mean())


def test_radii_in_any_order_and_unit():
    found = evaluate(some_maps(), radii=["750m", 0, "full", 1.5, 2], bootstrap=0)
    assert found.sweep["radius_px"].unique().tolist() == [0, 1.5, 2, np.inf]


def test_images_without_a_fire_id_are_tested_one_by_one():
    arrays = some_arrays()
    del arrays["fire_id"]
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=20)
    assert set(found.tests["unit"]) == {"image"}
    assert set(found.per_image["fire_id"]) == {""}
    assert found.tests["ci_low"].notna().all()


def test_images_whose_region_has_no_error_are_skipped_and_listed():
    arrays = some_arrays()
    arrays["student_prob"][5] = arrays["y"][5]
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=0)
    row = found.per_image.query("index == 5 and method == 'ensemble'").iloc[0]
    assert math.isnan(row["auroc"])
    assert row["n_errors"] == 0
    assert set(found.tests.query("unit == 'image' and metric == 'auroc'")["n"]) == {10}


def test_a_year_in_which_nothing_is_defined(tmp_path):
    arrays = some_arrays()
    for method in METHODS:
        arrays[f"{method}_prob"] = arrays["y"].astype(np.float32)
    with pytest.warns(UndefinedMetricWarning) as caught:
        found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=10)
    assert any("in 2018 for radius 0, 1," in str(warning.message) for warning in caught)
    assert found.sweep["auroc"].isna().all()
    assert (found.segmentation["ap"].dropna() == 1).all()
    assert math.isnan(found.auprc_baseline)
    found.write(tmp_path)
    assert json.loads((tmp_path / "tests.json").read_text())[0]["p"] is None
    pd.testing.assert_frame_equal(Results.read(tmp_path).sweep, found.sweep, check_exact=True)
    assert Results.read(tmp_path).summary() == found.summary()


def test_a_method_that_misses_every_fire_is_counted_not_lost():
    arrays = some_arrays()
    arrays["ensemble_prob"] *= 0.4
    with pytest.warns(UndefinedMetricWarning, match="precision"):
        found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=10)
    row = found.segmentation.set_index("method").loc["ensemble"]
    assert row["missed"] == row["fire_images"] == 11
    assert math.isnan(row["asd_m"])
    assert "ASD of ensemble" not in set(found.sensitivity["anchor"])
    with pytest.raises(ConfigError) as refused:
        evaluate(PredictedMaps.from_arrays(arrays, year=2018), anchor="auto", bootstrap=0)
    assert str(refused.value) == "anchor: ensemble misses every fire and has no ASD; give the anchor in pixels"


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
def test_images_of_one_pixel():
    y = np.array([1, 0, 1, 1]).reshape(4, 1, 1)
    arrays = {"y": y, "m_prob": np.array([0.9, 0.1, 0.2, 0.7]).reshape(4, 1, 1), "m_unc": np.full((4, 1, 1), 0.5)}
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=10)
    assert found.sweep.query("method == 'm'")["auroc"].tolist() == [0.5] * 12
    assert found.sweep["n_pixels"].tolist() == [3] * 24


def test_progress_counts_every_read():
    class Bar:
        total = done = 0
        closed = False

        def update(self, n):
            self.done += n

        def close(self):
            self.closed = True

    bar = Bar()

    def make(total):
        bar.total = total
        return bar

    evaluate(some_maps(), bootstrap=0, progress=make)
    assert bar.done == bar.total > 0
    assert bar.closed


def test_nothing_is_printed_outside_a_terminal(capfd):
    evaluate(some_maps(), bootstrap=0)
    assert capfd.readouterr() == ("", "")


def test_the_summary_is_a_verdict_a_table_and_a_line_for_each_test(results):
    lines = results.summary().splitlines()
    assert lines[0].startswith("AUROC: ")
    assert any(line.startswith("FCER within 4 px (1.50 km) of fire, as given; errors of student") for line in lines)
    table = lines[lines.index("") + 1 :]
    assert table[0].split()[:2] == ["year", "method"]
    methods = ("student", "ensemble", "probability", "climatology")
    assert [line.split()[:2] for line in table[1:9]] == [[year, name] for year in ("2018", "2019") for name in methods]
    assert [line.split()[0] for line in table[9:17]] == ["mean", "±"] * 4
    pattern = r"student > \w+, AU(ROC|PRC)( WITHIN)? per (image|fire): n \d+, r [+-]\d.\d\d, p .*"
    assert all(re.match(pattern, line) for line in table[18:-1])
    assert table[-1] == "6 more in tests.json"
    assert max(map(len, lines)) <= 120


BAD = {
    "reference": (
        {"reference": "teacher"},
        "reference: there is no method 'teacher'; choose one of student, ensemble",
    ),
    "radius": (
        {"radii": ["ten"]},
        "radii: 'ten' is no radius; give pixels from 0 on, metres such as 1500m, or full",
    ),
    "negative radius": (
        {"radii": [-1]},
        "radii: -1 is no radius; give pixels from 0 on, metres such as 1500m, or full",
    ),
    "anchor": (
        {"anchor": "near"},
        "anchor: 'near' is no radius; give pixels from 0 on, metres such as 1500m, or auto",
    ),
    "threshold": (
        {"threshold": 1.5},
        "threshold: 1.5 is no threshold; give a probability from 0 to below 1, such as 0.5",
    ),
    "infinite anchor": (
        {"anchor": math.inf},
        "anchor: inf is no radius; give pixels from 0 on, metres such as 1500m, or auto",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_with_a_sentence(case):
    options, sentence = BAD[case]
    with pytest.raises(ConfigError) as refused:
        evaluate(some_maps(), bootstrap=0, **options)
    assert str(refused.value) == sentence


def test_a_year_in_two_files(tmp_path):
    paths = [tmp_path / "a_2018.npz", tmp_path / "b_2018.npz"]
    for path in paths:
        write_maps(path, some_maps())
    with pytest.raises(PredictionsError) as refused:
        evaluate_files(paths, bootstrap=0)
    expected = f"{paths[0]} and {paths[1]} both hold the year 2018; give one file for each year"
    assert str(refused.value) == expected


def test_years_with_different_methods():
    years = [some_maps(2018), some_maps(2019, methods=("student", "other"))]
    with pytest.raises(PredictionsError) as refused:
        evaluate(years, bootstrap=0)
    assert str(refused.value) == (
        "predicted maps has the methods student, other, predicted maps has student, ensemble; give every year the same"
    )


def test_no_maps():
    with pytest.raises(PredictionsError, match="no predicted maps to evaluate; give one file for each year"):
        evaluate([])


def test_a_kill_while_writing_leaves_nothing_that_counts_as_finished(results, tmp_path, monkeypatch):
    results.write(tmp_path)
    Results.read(tmp_path)

    def killed(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(results.reliability), "to_csv", killed)
    with pytest.raises(KeyboardInterrupt):
        results.write(tmp_path)
    with pytest.raises(PredictionsError, match="no finished evaluation there"):
        Results.read(tmp_path)


def test_a_year_alone_decides_the_engine_and_maps_are_opened_once(tmp_path, monkeypatch):
    module = sys.modules["fcer.evaluation.evaluate"]
    called = []
    for name in ("open_maps", "choose_engine"):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, f=plain, n=name, **k: called.append(n) or f(*a, **k))
    paths = [tmp_path / f"predictions_{year}.npz" for year in (2018, 2019)]
    for path, year in zip(paths, (2018, 2019), strict=True):
        write_maps(path, some_maps(year))
    assert evaluate_files(paths, bootstrap=0, radii=[]).settings.engine == "exact"
    assert sorted(called) == ["choose_engine", "open_maps", "open_maps"]

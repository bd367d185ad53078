"""Whatever was evaluated, there is a report on it."""

import io
import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from fcer.errors import UndefinedMetricWarning
from fcer.evaluation import evaluate_files
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from fcer.report import write_report
from fcer.report.wording import headline, number, sentences_of_tests
from report_cases import some_arrays, write_years


def report_on(arrays, folder, year=2018, **options):
    path = folder / f"predictions_{year}.npz"
    write_maps(path, PredictedMaps.from_arrays(arrays, year=year))
    results = evaluate_files([path], bootstrap=10, progress=None)
    written = write_report(results, folder / "report", maps=[path], **options)
    return results, (folder / "report" / "report.html").read_text(), written


def test_what_is_written(results, map_files, tmp_path):
    written = write_report(results, tmp_path, maps=map_files, ablation={"utae_t5": results})
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path).as_posix() for path in written} == names
    assert written[-1] == tmp_path / "report.html"
    tables = {"report.html", "table1.csv", "table1.md", "table1.tex", "tests.csv"}
    figures = (
        *("headline", "sweep", "sweep_by_year", "calibration_sweep", "reliability", "corp", "risk_coverage"),
        *("sensitivity", "thresholds"),
    )
    data = {f"figures/{name}.csv" for name in (*figures, "ablation", "maps")}
    assert {name for name in names if name.endswith((".html", ".csv", ".md", ".tex"))} == tables | data
    tests = pd.read_csv(tmp_path / "tests.csv", dtype={"scope": "str"})
    pd.testing.assert_frame_equal(tests, results.tests, check_exact=True, check_dtype=False)


def test_the_same_results_make_the_same_page(results, plain_report, tmp_path):
    again = write_report(results, tmp_path)
    assert again[-1].read_bytes() == plain_report[-1].read_bytes()


@pytest.mark.skipif(find_spec("kaleido") is not None, reason="kaleido is installed")
def test_static_figures_that_are_left_out_are_named(plain_report):
    sentence = "Static figures are left out without kaleido; get it with pip install &#x27;fcer[figures]&#x27;."
    assert plain_report[-1].read_text().count(sentence) == 1


@pytest.mark.skipif(find_spec("kaleido") is None, reason="kaleido is not installed")
def test_static_figures_are_whole(plain_report):
    starts = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg"}
    for suffix, start in starts.items():
        files = [path for path in plain_report if path.suffix == suffix]
        assert files
        assert all(path.read_bytes().startswith(start) for path in files)


def test_one_year(tmp_path):
    results, page, _ = report_on(some_arrays(1), tmp_path)
    assert "± standard deviation over years" not in page
    assert "<td>Mean</td>" not in page
    assert headline(results)[0].endswith(", in 2018.")
    assert not (tmp_path / "report" / "figures" / "sweep_by_year.csv").exists()


def test_one_method(tmp_path):
    results, page, _ = report_on(some_arrays(1, methods=("mine",)), tmp_path)
    assert "A single method has nothing to be compared with but controls." in page
    assert "tests of other pairs" not in page
    assert not (tmp_path / "report" / "figures" / "sensitivity.csv").exists()
    assert "stands alone: there is no other method to compare it with." in headline(results)[1]
    assert (tmp_path / "report" / "tests.csv").read_text().startswith("metric,scope,unit")


def test_no_fire_id(tmp_path):
    arrays = some_arrays(1)
    del arrays["fire_id"]
    results, page, _ = report_on(arrays, tmp_path)
    assert len(sentences_of_tests(results)) == 3
    assert "small fire, 2018\\u003cbr\\u003eimage " in page


def test_nothing_is_defined(tmp_path):
    arrays = some_arrays(1)
    for method in ("student", "ensemble"):
        arrays[f"{method}_prob"] = arrays["y"].astype(np.float32)
    with pytest.warns(UndefinedMetricWarning):
        results, page, _ = report_on(arrays, tmp_path)
    assert headline(results)[1:] == ["No ranking is defined: the pixels are all right, or all wrong."]
    assert "cannot be compared, since no image has scores of both." in page
    assert "Maps are left out, since no image has both errors and right pixels at the anchor." in page
    assert "<td>nan" not in page
    assert " & -- & -- \\\\" in (tmp_path / "report" / "table1.tex").read_text()


def test_a_method_that_misses_every_fire(tmp_path):
    arrays = some_arrays(1)
    arrays["ensemble_prob"] *= 0.4
    with pytest.warns(UndefinedMetricWarning):
        report_on(arrays, tmp_path)
    table = pd.read_csv(tmp_path / "report" / "table1.csv").set_index("method")
    assert math.isnan(table.loc["ensemble", "asd_km"])


def test_equal_methods_are_level(tmp_path):
    arrays = some_arrays(1)
    for name in ("prob", "unc"):
        arrays[f"ensemble_{name}"] = arrays[f"student_{name}"]
    with pytest.warns(UndefinedMetricWarning, match="rank-biserial"):
        results, _, _ = report_on(arrays, tmp_path)
    assert "student is level with ensemble" in sentences_of_tests(results)[0]
    assert (
        "is not shown at the 5% level (rank-biserial r undefined, one-sided p 1.000" in sentences_of_tests(results)[0]
    )


def test_the_paper_beside_other_methods(tmp_path):
    _, page, _ = report_on(some_arrays(1, methods=("mine", "theirs")), tmp_path, paper=True)
    assert "None of the paper&#x27;s years and methods is among these results." in page
    comparison = (tmp_path / "report" / "paper_comparison.csv").read_text()
    assert pd.read_csv(io.StringIO(comparison)).empty


def test_many_methods_and_an_anchor_between_pixels(tmp_path):
    methods = tuple(f"m{i}" for i in range(5))
    paths = write_years(tmp_path, (2018,), methods=methods)
    # an anchor of less than a pixel holds nothing but fire, and so a single predicted class that is ever wrong
    with pytest.warns(UndefinedMetricWarning, match="within the predicted class"):
        results = evaluate_files(paths, bootstrap=0, anchor="auto", radii=[0, "300m", 2.5], progress=None)
    write_report(results, tmp_path / "report", maps=paths)
    sentences = sentences_of_tests(results)
    assert len(sentences) == 2 * 3, "of the first pair; the others are in a table"
    assert "interval" not in sentences[0]


def test_the_headline_has_the_numbers(results):
    means = results.over_years("anchor").set_index("method")
    where, *said = headline(results)
    assert where == "Within 4 px (1.50 km) of fire, errors of student, as mean of 3 years."
    for metric, name in (("auroc", "AUROC: "), ("auroc_within", "AUROC within the predicted class: ")):
        sentences = " ".join(sentence for sentence in said if sentence.startswith(name))
        for method in results.settings.own_methods:
            assert f"{method} ({number(means.loc[method, metric])})" in sentences


def test_synthetic_fires_are_named_before_all_else(results):
    synthetic = replace(results, settings=replace(results.settings, synthetic=True))
    assert "synthetic" in headline(synthetic)[0]
    assert headline(synthetic)[1:] == headline(results)


def test_the_tests_in_words(results):
    row = results.tests[(results.tests["scope"] == "pooled") & (results.tests["unit"] == "fire")].iloc[0]
    sentence = next(text for text in sentences_of_tests(results) if text.startswith("AUROC by fire"))
    assert f"over {row['n']} fires student is {number(abs(row['median_delta']))} " in sentence
    assert f"{number(row['ci_low'], signed=True)} to {number(row['ci_high'], signed=True)}" in sentence
    assert f"rank-biserial r {number(row['rank_biserial'], 2, signed=True)}" in sentence
    assert ("is shown" in sentence) == (row["p_holm"] < 0.05)

"""Figures show the engine's numbers, and nothing else."""

import math

import numpy as np
import pandas as pd
import pytest

from fcer.core import reliability_curve
from fcer.evaluation import evaluate
from fcer.evaluation.comparison import RANKING_METRICS
from fcer.maps.predicted_maps import PredictedMaps
from fcer.report.corp import corp
from fcer.report.curves import (
    ablation,
    ablation_data,
    reliability,
    reliability_data,
    risk_coverage,
    sensitivity,
    thresholds,
)
from fcer.report.style import RadiusAxis, looks
from fcer.report.sweeps import calibration_sweep, mean_sweep, sweep_over_years, year_sweeps
from plain_fcer import plain_region
from report_cases import some_arrays, some_maps

STYLE = looks(("student", "ensemble", "probability"))


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


@pytest.mark.parametrize(
    "make, metrics", [(mean_sweep, ["auroc", "auprc", "auroc_within"]), (calibration_sweep, ["brier", "nll"])]
)
def test_the_mean_sweep_is_the_results_over_years(results, make, metrics):
    figure = make(results, STYLE)
    methods = ["student", "ensemble", *(["probability"] if make is mean_sweep else [])]
    means = results.over_years("sweep")
    means = means[means["method"].isin(methods)]
    assert figure.data["metric"].unique().tolist() == metrics == list(figure.panels)
    for metric in metrics:
        rows = figure.data[figure.data["metric"] == metric].reset_index(drop=True)
        for column, source in (("value", metric), ("std", f"{metric}_std"), ("radius_px", "radius_px")):
            np.testing.assert_array_equal(rows[column], means[source])
        for method in methods:
            drawn = traces(figure.panels[metric], method)
            np.testing.assert_array_equal(drawn[0].y, rows[rows["method"] == method]["value"])


def test_baselines_are_of_the_region_not_pasted(results):
    data = sweep_over_years(results, ("auroc", "auprc", "auroc_within", "nll"))
    assert (data[data["metric"].isin(["auroc", "auroc_within"])]["baseline"] == 0.5).all()
    assert data[data["metric"] == "nll"]["baseline"].isna().all()
    baseline = data[(data["metric"] == "auprc") & (data["method"] == "student")].set_index("radius_px")["baseline"]
    shares = results.sweep[results.sweep["method"] == "student"].groupby("radius_px")["prevalence"].mean()
    np.testing.assert_allclose(baseline, shares, rtol=1e-14)
    assert baseline.nunique() > 5


def test_years_are_drawn_one_by_one(results):
    figure = year_sweeps(results, STYLE)
    assert list(figure.panels) == [f"{metric}_{year}" for metric in RANKING_METRICS for year in (2018, 2019, 2020)]
    merged = figure.data[figure.data["metric"] == "auroc"].merge(results.sweep, on=["year", "method", "radius_px"])
    assert len(merged) == len(results.sweep)
    assert (merged["value"] == merged["auroc"]).all()


def test_the_full_image_stands_at_the_right_end(results):
    panel = mean_sweep(results, STYLE).panels["auroc"]
    x = traces(panel, "student")[0].x
    assert list(x[:-1]) == list(range(11))
    assert panel.layout.xaxis.ticktext[-1] == "full"
    assert panel.layout.xaxis.tickvals[-1] == x[-1] > 10
    assert panel.layout.xaxis.ticktext[4].startswith("4<br>")
    assert ">1.5<" in panel.layout.xaxis.ticktext[4]


def test_radius_axes_of_any_radii():
    assert RadiusAxis([math.inf]).place([math.inf]) == [1.0]
    assert RadiusAxis([2.0]).place([2.0]) == [2.0]
    assert RadiusAxis([0, 100, math.inf]).place([100, math.inf]) == [100.0, 250.0]


def test_a_sweep_of_the_full_image_alone_is_drawn():
    found = evaluate(some_maps(2018), radii=["full"], bootstrap=0, progress=None)
    panel = mean_sweep(found, STYLE).panels["auroc"]
    assert list(panel.layout.xaxis.ticktext) == ["full"]
    assert len(traces(panel, "student")[0].y) == 1


def test_reliability_pools_the_pixels_of_all_years(results):
    data = reliability_data(results)
    fire, prob = [], []
    for year in (2018, 2019, 2020):
        arrays = some_arrays(year)
        region = np.array([plain_region(image, 4) for image in arrays["y"].astype(bool)])
        fire.append(arrays["y"][region])
        prob.append(arrays["ensemble_prob"][region])
    expected = reliability_curve(np.concatenate(fire), np.concatenate(prob))
    mine = data[data["method"] == "ensemble"]
    for column, values in expected._asdict().items():
        np.testing.assert_allclose(mine[column], values, rtol=1e-9)
    drawn = traces(reliability(results, STYLE).panels["reliability"], "ensemble")[0]
    np.testing.assert_array_equal(drawn.y, mine["fire_rate"])


def test_risk_over_coverage_is_the_results_over_years(results):
    figure = risk_coverage(results, STYLE)
    pd.testing.assert_frame_equal(figure.data, results.over_years("risk_coverage"), check_exact=True)
    drawn = traces(figure.panels["risk_coverage"], "student")[0]
    np.testing.assert_array_equal(drawn.y, figure.data[figure.data["method"] == "student"]["risk"])
    values = results.risk_coverage.query("method == 'student' and coverage == 0.5")["risk"]
    assert drawn.y[49] == pytest.approx(values.mean())


def test_sensitivity_shows_each_method_at_each_anchor(results):
    figure = sensitivity(results, STYLE)
    assert figure.data is results.sensitivity
    rows = results.sensitivity.query("metric == 'auprc'").sort_values("radius_px", kind="stable")
    drawn = [traces(figure.panels["auprc"], method)[0] for method in ("student", "ensemble")]
    np.testing.assert_array_equal(drawn[0].y, rows["a_score"])
    np.testing.assert_array_equal(drawn[1].y, rows["b_score"])
    assert all("student &gt; ensemble: r " in text for text in drawn[1].text)


def test_thresholds_show_each_method_at_each_threshold(results):
    figure = thresholds(results, STYLE)
    means = results.over_years("thresholds")
    assert set(figure.panels) == {"auroc", "auroc_within"}
    for metric, panel in figure.panels.items():
        drawn = [trace for trace in panel.data if trace.name == "ensemble"]
        rows = means[means["method"] == "ensemble"]
        np.testing.assert_allclose(drawn[0].x, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
        np.testing.assert_allclose(drawn[0].y, rows[metric])
    at_half = means[means["threshold"] == results.settings.threshold].set_index("method")["auroc"]
    anchor = results.over_years("anchor").set_index("method")["auroc"]
    np.testing.assert_allclose(at_half, anchor[at_half.index], atol=1e-3)


def test_isotonic_reliability_has_its_band_and_the_parts_of_the_score(results):
    figure = corp(results, STYLE)
    assert list(figure.panels) == ["2018", "2019", "2020"] and figure.data is results.corp
    rows = results.corp.query("year == 2019 and method == 'ensemble'")
    traces = figure.panels["2019"].data
    step = next(trace for trace in traces if trace.name == "ensemble")
    np.testing.assert_allclose(step.y[::2], rows["fire_rate"])
    band = next(trace for trace in traces if trace.fill == "toself" and trace.legendgroup == "ensemble")
    assert max(band.y) == rows["band_high"].max()
    ours = results.over_years("anchor").set_index("method").loc["student"]
    parts = " = ".join([f"{ours['brier']:.3f}", f"{ours['miscalibration']:.3f} - {ours['discrimination']:.3f}"])
    assert f"student {parts} + {ours['uncertainty']:.3f}" in figure.caption


def test_sensitivity_of_three_methods_has_each_score_once():
    methods = ("student", "ensemble", "dropout")
    found = evaluate(some_maps(2018, methods=methods), bootstrap=0, progress=None)
    panel = sensitivity(found, looks(methods)).panels["auroc"]
    for method in methods:
        drawn = traces(panel, method)[0]
        assert len(drawn.x) == found.sensitivity["anchor"].nunique()
        assert drawn.text[0].count("<br>") == 2


def test_backbones_side_by_side(results):
    other = evaluate(some_maps(2018, methods=("student", "dropout")), bootstrap=0, progress=None)
    data = ablation_data({"utae_t5": results, "unet_t1": other})
    assert data["results"].tolist() == ["utae_t5"] * 3 + ["unet_t1"] * 3
    means = results.over_years("anchor").set_index("method")
    assert data["auroc"][0] == means.loc["student", "auroc"]
    assert data["auprc_std"][1] == means.loc["ensemble", "auprc_std"]
    figure = ablation({"utae_t5": results, "<i>": other}, looks(("student", "ensemble", "probability", "dropout")))
    assert list(figure.panels["auroc"].layout.xaxis.ticktext) == ["utae_t5", "&lt;i&gt;"]
    assert [len(trace.y) for trace in figure.panels["auroc"].data] == [2, 1, 2, 1]


def test_methods_of_one_probability_share_a_line_of_its_calibration():
    arrays = some_arrays(2018, methods=("student", "ensemble", "entropy"))
    arrays["entropy_prob"] = arrays["student_prob"]
    found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=0, progress=None)
    style = looks(found.settings.methods)
    for figure in (calibration_sweep(found, style), reliability(found, style)):
        for panel in figure.panels.values():
            named = [trace.name for trace in panel.data if trace.name and trace.name != "perfect"]
            assert named == ["student, entropy", "ensemble"]
    ranked = mean_sweep(found, style).panels["auroc"]
    assert [trace.name for trace in ranked.data if trace.name in style] == list(style)


def test_every_method_has_one_colour_in_every_figure(results):
    figures = [
        make(results, STYLE) for make in (mean_sweep, calibration_sweep, reliability, risk_coverage, sensitivity)
    ]
    for figure in figures:
        for panel in figure.panels.values():
            drawn = [trace for trace in panel.data if trace.name in STYLE]
            has_controls = figure.name in ("sweep", "risk_coverage")
            assert [trace.name for trace in drawn] == list(STYLE)[: 3 if has_controls else 2]
            for trace in drawn:
                assert (trace.line.color or trace.marker.color) == STYLE[trace.name].colour


def test_many_methods_can_still_be_told_apart():
    style = looks([f"m{i}" for i in range(14)])
    assert len(set(style.values())) == 14

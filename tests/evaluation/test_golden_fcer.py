"""The golden values: numbers that an independent implementation of the paper produced."""

import json
from pathlib import Path

import numpy as np
import pytest

from fcer.evaluation import Results, evaluate_files

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
WITHIN = json.loads((GOLDEN / "fcer_within.json").read_text())["years"]
EXPECTED = json.loads((GOLDEN / "fcer_expected.json").read_text())
YEARS = EXPECTED["years"]
METHODS = ("student", "ensemble")


@pytest.fixture(scope="module")
def results() -> Results:
    return evaluate_files([GOLDEN / f"predictions_{year}.npz" for year in YEARS], bootstrap=0)


def rows(frame, **conditions):
    for column, value in conditions.items():
        frame = frame[frame[column] == value]
    return frame


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric, tolerance", [("auroc", 1e-9), ("auprc", 1e-9), ("brier", 1e-6), ("nll", 1e-6)])
def test_sweep(results, year, method, metric, tolerance):
    curve = rows(results.sweep, year=year, method=method)
    assert curve["radius_px"].tolist() == [*range(11), np.inf]
    np.testing.assert_allclose(curve[metric], EXPECTED["sweep"][str(year)][method][metric], rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_segmentation(results, method):
    found = rows(results.segmentation, method=method).set_index("year")
    np.testing.assert_allclose(found.loc[YEARS, "ap"], EXPECTED["ap"][method], rtol=0, atol=1e-9)
    for year in YEARS:
        expected = EXPECTED["asd_m"][str(year)]
        assert found.loc[year, "asd_m"] == pytest.approx(expected[method], abs=1e-6)
        assert found.loc[year, "fire_images"] == expected["fire_images"]
        assert found.loc[year, "missed"] == expected[f"missed_{method}"]


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["auroc", "auprc"])
def test_per_image(results, year, method, metric):
    scores = rows(results.per_image, year=year, method=method)[metric].dropna()
    expected = EXPECTED["per_image_r4"][str(year)][f"{metric}_{method}"]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("metric", ["auroc", "auprc"])
def test_pooled_test(results, metric):
    (found,) = rows(results.tests, metric=metric, scope="pooled", unit="image", b="ensemble").to_dict("records")
    assert (found["a"], found["b"]) == METHODS
    for name, value in EXPECTED["wilcoxon"][metric].items():
        assert found[name] == pytest.approx(value, abs=1e-9)


def test_random_baseline(results):
    assert results.auprc_baseline == pytest.approx(EXPECTED["auprc_baseline_r4"], abs=1e-9)


@pytest.fixture(scope="module", params=["exact", "shards"])
def by_engine(request) -> tuple[Results, float]:
    files = [GOLDEN / f"predictions_{year}.npz" for year in YEARS]
    found = evaluate_files(files, bootstrap=0, engine=request.param)
    return found, 1e-9 + max(found.settings.auroc_bound, found.settings.within_bound)


@pytest.mark.parametrize("year", YEARS)
def test_within_the_predicted_class_and_skill(by_engine, year):
    results, ranked = by_engine
    limits = dict.fromkeys(("auroc", "auroc_within", "auroc_alarms", "auroc_missed"), ranked)
    limits |= {"brier_skill": 1e-6, "nll_skill": 1e-6}
    for method, metrics in WITHIN[str(year)]["methods"].items():
        curve = rows(results.sweep, year=year, method=method)
        for metric, limit in limits.items():
            if method == "probability" and metric.endswith("skill"):
                assert curve[metric].isna().all(), "a control borrows its probabilities"
                continue
            expected = np.array(metrics[metric], dtype=float)
            np.testing.assert_allclose(curve[metric], expected, rtol=0, atol=limit, err_msg=f"{method} {metric}")
        share = np.array(WITHIN[str(year)]["false_alarm_share"], dtype=float)
        np.testing.assert_allclose(curve["false_alarm_share"], share, rtol=0, atol=1e-9)


@pytest.mark.parametrize("year", YEARS)
def test_surface_over_common_images(by_engine, year):
    for method, expected in WITHIN[str(year)]["surface"].items():
        (row,) = rows(by_engine[0].segmentation, year=year, method=method).to_dict("records")
        assert row["asd_images"] == expected["asd_images"]
        assert row["asd_m"] == pytest.approx(expected["asd_m"], abs=1e-3)
        assert row["asd_common_m"] == pytest.approx(expected["asd_common_m"], abs=1e-3)

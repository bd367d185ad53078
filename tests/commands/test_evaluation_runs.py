"""Evaluations as MLflow runs: the golden numbers read back, and a report from them."""

import json
import math
import re
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from study_cases import fcer

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
FILES = [GOLDEN / f"predictions_{year}.npz" for year in (2018, 2019)]
EXPECTED = json.loads((GOLDEN / "fcer_expected.json").read_text())
TOLERANCE = {"auroc": 1e-9, "auprc": 1e-9, "brier": 1e-6, "nll": 1e-6}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    done = fcer(folder, "evaluate", "--predictions", *FILES, "--out", "results", "--bootstrap", "50")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def runs(evaluated: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{evaluated}/mlflow.db")
    return mlflow.search_runs(experiment_names=["fcer"])


def test_one_run_for_each_method_and_year_below_one(runs: pd.DataFrame):
    parent = runs[runs["tags.mlflow.runName"] == "evaluate 2018-2019"].iloc[0]
    below = runs[runs["tags.mlflow.parentRunId"] == parent["run_id"]]
    assert set(below["tags.mlflow.runName"]) == {
        *("student 2018", "student 2019", "ensemble 2018", "ensemble 2019", "student", "ensemble"),
        *("probability 2018", "probability 2019", "probability"),
    }
    assert len(runs) == 10 and set(runs["status"]) == {"FINISHED"}
    for _, run in below.iterrows():
        method, _, year = run["tags.mlflow.runName"].partition(" ")
        assert (run["params.method"], run["params.year"]) == (method, year or "mean")


def test_curves_over_the_radius_are_the_golden_ones(runs: pd.DataFrame, evaluated: Path):
    client = mlflow.MlflowClient(f"sqlite:///{evaluated}/mlflow.db")
    for year, methods in EXPECTED["sweep"].items():
        for method, metrics in methods.items():
            run = runs[runs["tags.mlflow.runName"] == f"{method} {year}"].iloc[0]
            for metric, tolerance in TOLERANCE.items():
                history = client.get_metric_history(run["run_id"], f"fcer/{metric}")
                assert [m.step for m in history] == list(range(11))
                assert [m.value for m in history] == pytest.approx(metrics[metric][:-1], abs=tolerance)
                assert run[f"metrics.full/{metric}"] == pytest.approx(metrics[metric][-1], abs=tolerance)
                assert run[f"metrics.anchor/{metric}"] == pytest.approx(metrics[metric][4], abs=tolerance)


def test_segmentation_and_tests_are_the_engines_to_the_digit(runs: pd.DataFrame, evaluated: Path):
    segmentation = pd.read_csv(evaluated / "results" / "segmentation.csv")
    for row in segmentation.to_dict("records"):
        run = runs[runs["tags.mlflow.runName"] == f"{row['method']} {row['year']}"].iloc[0]
        for metric in ("ap", "asd_m"):
            np.testing.assert_equal(run[f"metrics.segmentation/{metric}"], row[metric])  # a control has none, NaN
            assert math.isnan(row[metric]) == (row["method"] == "probability")
    parent = runs[runs["tags.mlflow.runName"] == "evaluate 2018-2019"].iloc[0]
    tests = pd.DataFrame(json.loads((evaluated / "results" / "tests.json").read_text()))
    for metric in ("auroc", "auprc"):
        row = tests[(tests.metric == metric) & (tests.scope == "pooled") & (tests.unit == "image")].iloc[0]
        assert parent[f"metrics.wilcoxon/{metric}/p"] == row["p"]
        assert parent[f"metrics.wilcoxon/{metric}/rank_biserial"] == row["rank_biserial"]


def test_the_mean_over_years_is_a_run_of_its_own(runs: pd.DataFrame, evaluated: Path):
    sweep = pd.read_csv(evaluated / "results" / "sweep.csv")
    client = mlflow.MlflowClient(f"sqlite:///{evaluated}/mlflow.db")
    run = runs[runs["tags.mlflow.runName"] == "student"].iloc[0]
    history = client.get_metric_history(run["run_id"], "fcer/auroc")
    mine = sweep[(sweep.method == "student") & (sweep.radius_px < math.inf)]
    assert [m.value for m in history] == pytest.approx(mine.groupby("radius_px")["auroc"].mean().tolist(), abs=1e-12)


def test_every_file_is_an_artifact(runs: pd.DataFrame, evaluated: Path):
    parent = runs[runs["tags.mlflow.runName"] == "evaluate 2018-2019"].iloc[0]["run_id"]
    client = mlflow.MlflowClient(f"sqlite:///{evaluated}/mlflow.db")
    kept = {Path(file.path).name for file in client.list_artifacts(parent, "results")}
    assert kept == {path.name for path in (evaluated / "results").iterdir()}
    assert {"sweep.csv", "segmentation.csv", "per_image.csv", "tests.json", "evaluation.json"} <= kept
    used = {data.dataset.name for data in client.get_run(parent).inputs.dataset_inputs}
    assert used == {path.name for path in FILES}, "and it says which maps were evaluated"


def test_radii_between_pixels_are_logged_by_the_metre(tmp_path: Path):
    done = fcer(tmp_path, "evaluate", "--predictions", FILES[0], "--radii", "0.5", "750m", "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("fcer").experiment_id
    (run,) = client.search_runs([experiment], "attributes.run_name = 'student 2018'")
    assert [m.step for m in client.get_metric_history(run.info.run_id, "fcer_m/auroc")] == [188, 750]
    assert "fcer/auroc" not in run.data.metrics


@pytest.mark.parametrize("source", ["folder", "run", "experiment"])
def test_a_report_from_wherever_the_evaluation_is(source: str, evaluated: Path, runs: pd.DataFrame, tmp_path: Path):
    parent = runs[runs["tags.mlflow.runName"] == "evaluate 2018-2019"].iloc[0]["run_id"]
    named = {
        "folder": ["--results", evaluated / "results"],
        "run": ["--runs", parent],
        "experiment": ["--experiment", "fcer"],
    }
    done = fcer(evaluated, "report", *named[source], "--out", tmp_path / "report", "--work", tmp_path / "work")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "report" / "table1.csv")
    anchor = pd.read_csv(evaluated / "results" / "anchor.csv").set_index(["year", "method"])
    own = (table["year"] != "mean") & (table["method"] != "climatology")
    for row in table[own].to_dict("records"):
        for metric in ("brier", "nll", "auroc", "auprc"):
            expected = anchor.loc[(int(row["year"]), row["method"]), metric]
            np.testing.assert_equal(row[metric], expected, "to the digit; a control has no loss, NaN")
    assert (tmp_path / "report" / "report.html").stat().st_size > 1e6, "plotly is in it"
    page = (tmp_path / "report" / "report.html").read_text()
    for said in ("made", "fcer version", "commit", "engine", "fingerprint of results"):
        assert re.search(f"<dt>{said}</dt><dd>[^<]+</dd>", page), said
    client = mlflow.MlflowClient(f"sqlite:///{evaluated}/mlflow.db")
    experiment = client.get_experiment_by_name("fcer").experiment_id
    run = client.search_runs([experiment], "tags.`fcer.command` = 'report'")[0]
    kept = {file.path for file in client.list_artifacts(run.info.run_id, "report")}
    assert {"report/report.html", "report/table1.tex", "report/figures"} <= kept
    if source != "folder":
        assert run.data.tags["fcer.from.evaluation0"] == parent


def test_a_run_says_what_was_evaluated_and_nothing_of_what_was_not(runs: pd.DataFrame):
    parent = runs[runs["tags.mlflow.runName"] == "evaluate 2018-2019"].dropna(axis=1).iloc[0]
    params = {name.removeprefix("params.") for name in parent.index if name.startswith("params.")}
    assert params == {"predictions", "anchor", "anchor_px", "bootstrap", "seed"}, (
        "what differs from its default, and what tells runs apart"
    )
    assert parent["params.predictions"] == " ".join(map(str, FILES))
    assert parent["tags.fcer.test"] == "student > ensemble"


def test_years_are_not_dropped_from_an_experiment_without_a_word(tmp_path: Path):
    for files in (FILES, FILES[1:]):
        done = fcer(tmp_path, "evaluate", "--predictions", *files, "--out", "results", "--bootstrap", "0")
        assert done.returncode == 0, done.stderr
    done = fcer(tmp_path, "report", "--experiment", "fcer", "--out", "report")
    assert done.returncode == 2 and "experiment: years 2019 are in a newer evaluation too" in done.stderr
    again = fcer(tmp_path, "evaluate", "--predictions", FILES[0], "--out", "results", "--bootstrap", "0")
    assert again.returncode == 0
    done = fcer(tmp_path, "report", "--experiment", "fcer", "--out", "report")
    assert done.returncode == 0, done.stderr
    assert set(pd.read_csv(tmp_path / "report" / "table1.csv")["year"]) == {"2018", "2019", "mean"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--results", "results", "--ablation", "a/r", "b/r"], "ablation: two folders are called r"),
        (["--results", "a", "--experiment", "fcer"], "these are three ways to name evaluations; give one of them"),
        (["--results", "nowhere"], "nowhere: no finished evaluation there; run fcer evaluate --out nowhere"),
        (["--experiment", "other"], "experiment: there is no 'other' at "),
        (["--runs", "0123"], "failed ("),
    ],
)
def test_what_cannot_be_reported_is_one_line(options: list[str], sentence: str, evaluated: Path, tmp_path: Path):
    for name in "ab":
        (evaluated / name / "r").mkdir(parents=True, exist_ok=True)
    done = fcer(evaluated, "report", *options, "--work", tmp_path)
    assert done.returncode in (1, 2) and sentence in done.stderr and done.stderr.count("\n") == 1

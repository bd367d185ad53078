"""An evaluation in MLflow: tables that the UI shows, methods in the colours of the report, tests by their own name."""

import json
from pathlib import Path

import mlflow
import pandas as pd
import pytest

from fcer.evaluation import evaluate_files
from fcer.evaluation.results import Results
from fcer.report.style import looks
from fcer.tracking import link_to, tracked_run
from fcer.tracking.evaluation_runs import log_results
from report_cases import write_years


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("results")
    results = evaluate_files(write_years(folder, (2020, 2021)), radii=(0, 2, 4), bootstrap=20)
    results.write(folder)
    return results, folder


def test_an_evaluation_is_there_to_be_looked_at(store: str, results: tuple[Results, Path], tmp_path: Path):
    scored, folder = results
    colours = {method: look.colour for method, look in looks(scored.settings.methods).items()}
    with tracked_run("evaluate", settings={}, work=tmp_path) as run:
        log_results(run, scored, folder, colours=colours)
    client = mlflow.MlflowClient(store)
    told = client.get_run(run.id)
    row = scored.tests.query("metric == 'auroc' and scope == 'pooled' and unit == 'image'").iloc[0]
    assert told.data.metrics["wilcoxon/auroc/p"] == pytest.approx(row["p"])
    assert told.data.metrics["wilcoxon/auroc/rank_biserial"] == pytest.approx(row["rank_biserial"])
    assert not [name for name in told.data.metrics if name.startswith(("test/", "anchor/px"))]
    assert float(told.data.params["anchor_px"]) == scored.settings.anchor_px
    assert told.data.metrics["headline/student_auroc"] == pytest.approx(scored.over_years("anchor")["auroc"].iloc[0])
    note = told.data.tags["mlflow.note.content"]
    assert "| student | 0." in note and f"viewStateShareKey={run.id}" in note
    view = json.loads(client.get_experiment(told.info.experiment_id).tags[f"mlflow.sharedViewState.{run.id}"])
    assert view["compareRunCharts"][0]["metricKey"] == "fcer/auroc"
    assert link_to(run.id, below=True).endswith(f"&viewStateShareKey={run.id}")
    for name in ("sweep", "segmentation", "per_image", "tests"):
        shown = client.load_table(told.info.experiment_id, f"tables/{name}.json", run_ids=[run.id])
        assert list(shown.columns) == list(getattr(scored, name).columns) and len(shown) == len(getattr(scored, name))
    below = client.search_runs([told.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.id}'")
    assert len(below) == 3 * 3  # two methods and the control `probability`, each for two years and the mean
    drawn = pd.DataFrame([{"method": one.data.params["method"], **one.data.tags} for one in below])
    assert len(set(colours.values())) == len(colours), "the UI draws every line solid"
    assert dict(zip(drawn["method"], drawn["mlflow.runColor"], strict=True)) == colours

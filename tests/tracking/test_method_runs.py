"""An evaluation in MLflow: tables that the UI shows, methods in the colours of the report, tests by their own name."""

from pathlib import Path

import mlflow
import pandas as pd
import pytest

from fcer.evaluation import evaluate_files
from fcer.evaluation.results import Results
from fcer.report.style import looks
from fcer.tracking import tracked_run
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
    for name in ("sweep", "segmentation", "per_image", "tests"):
        shown = client.load_table(told.info.experiment_id, f"tables/{name}.json", run_ids=[run.id])
        assert list(shown.columns) == list(getattr(scored, name).columns) and len(shown) == len(getattr(scored, name))
    below = client.search_runs([told.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.id}'")
    assert len(below) == 3 * 3  # two methods and the control `probability`, each for two years and the mean
    drawn = pd.DataFrame([{"method": one.data.params["method"], **one.data.tags} for one in below])
    assert dict(zip(drawn["method"], drawn["mlflow.runColor"], strict=True)) == colours

"""What users do with the runs: select two methods in the MLflow UI and see the sweep as lines over the radius."""

import json
import shutil
from pathlib import Path

import mlflow
import pytest

from mlflow_server import Server
from study_cases import fcer

pytest.importorskip("selenium", reason="the browser is driven by selenium (requirements-dev.txt)")

from mlflow_browser import CHROMIUM, DRIVER, browser, names_listed, open_chart

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium-driver)"
)


@pytest.mark.slow
def test_comparing_two_methods_shows_the_sweep(tmp_path: Path):
    files = [GOLDEN / f"predictions_{year}.npz" for year in (2018, 2019)]
    done = fcer(tmp_path, "evaluate", "--predictions", *files, "--out", "results", "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "results")  # the store alone must be enough
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("fcer").experiment_id
    server = Server(tmp_path)
    server.start()
    try:
        with browser() as driver:
            chart = open_chart(driver, server.uri, experiment, "params.year = '2018'", "fcer/auroc")
            assert {"evaluate", "student 2018", "ensemble 2018"} <= names_listed(driver)
            driver.save_screenshot(str(tmp_path / "sweep.png"))
    finally:
        server.kill()
    expected = json.loads((GOLDEN / "fcer_expected.json").read_text())["sweep"]["2018"]
    drawn = {line["name"]: line for line in chart["lines"]}
    assert len(drawn) == 3, "two methods, and the control"
    for method, metrics in expected.items():
        (line,) = [line for name, line in drawn.items() if method in name]
        assert line["x"] == list(range(11)), "the radius in px"
        assert line["y"] == pytest.approx(metrics["auroc"][:-1], abs=1e-9)

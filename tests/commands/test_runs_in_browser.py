"""What users do with the runs: follow the printed link and see the sweep as lines over the radius, each its colour."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlflow_server import Server
from study_cases import environment, fcer

pytest.importorskip("selenium", reason="the browser is driven by selenium (requirements-dev.txt)")

from mlflow_browser import CHROMIUM, DRIVER, browser, names_listed, open_chart

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "data" / "golden"
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium-driver)"
)


@pytest.mark.slow
def test_the_printed_link_shows_the_sweep_in_distinct_colours(tmp_path: Path):
    files = [GOLDEN / f"predictions_{year}.npz" for year in (2018, 2019)]
    done = fcer(tmp_path, "evaluate", "--predictions", *files, "--out", "results", "--bootstrap", "0")
    assert done.returncode == 0, done.stderr
    (printed,) = re.findall(r"^MLflow: (http://127.0.0.1:5000\S+)$", done.stdout, re.MULTILINE)
    begin = re.search("python -c '(.*)'", (ROOT / "Makefile").read_text())
    assert begin, "what `make ui` prints"
    call = [sys.executable, "-c", begin[1]]
    told = subprocess.run(call, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True)
    assert told.stdout.strip() == printed, "both lead to the latest evaluation"
    shutil.rmtree(tmp_path / "results")  # the store alone must be enough
    server = Server(tmp_path)
    server.start()
    try:
        with browser() as driver:
            chart = open_chart(driver, printed.replace("http://127.0.0.1:5000", server.uri), "fcer/auroc")
            assert names_listed(driver) == {"student", "ensemble", "probability"}
            driver.save_screenshot(str(tmp_path / "sweep.png"))
    finally:
        server.kill()
    expected = json.loads((GOLDEN / "fcer_expected.json").read_text())["sweep"]
    drawn = {line["name"].split()[0]: line for line in chart["lines"]}
    assert len({line["colour"] for line in drawn.values()}) == len(drawn) == 3, "two methods, and the control"
    for method in ("student", "ensemble"):
        mean = np.mean([expected[year][method]["auroc"][:-1] for year in ("2018", "2019")], axis=0)
        assert drawn[method]["x"] == list(range(11)), "the radius in px"
        assert drawn[method]["y"] == pytest.approx(mean, abs=1e-9)

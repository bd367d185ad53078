"""A study of 50 trials on the demo's data: trials a minute, and the share of the workers' time that is not fitting.

Time counts from the first trial's begin to the last one's end, tracking in MLflow and the storage included: making the
data, training the members and starting the workers are not the study's.
"""

import contextlib
import csv
import io
import os
import tempfile
from datetime import datetime
from pathlib import Path

from tests.benchmarks.rows import hold

from fcer.cli import main as fcer

TRIALS, WORKERS = 50, 2


def main() -> None:
    """Print one row."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        try:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                code = fcer(["search", "--trials", str(TRIALS), "--workers", str(WORKERS)])
            assert code == 0, said.getvalue()
            with Path("work/studies/head/trials.csv").open() as file:
                rows = list(csv.DictReader(file))
        finally:
            os.chdir(before)
            del os.environ["MLFLOW_TRACKING_URI"]
    begun = [datetime.fromisoformat(row["started"]) for row in rows]
    ended = [datetime.fromisoformat(row["ended"]) for row in rows]
    seconds = (max(ended) - min(begun)).total_seconds()
    fitting = sum(float(row["fit_seconds"]) for row in rows if row["fit_seconds"])
    best = max(float(row["auroc"]) for row in rows if row["state"] == "complete")
    paper = next(float(row["auroc"]) for row in rows if row["paper"] == "true")
    rate = f"{60 * len(rows) / seconds:.0f} trials a minute"
    note = f"{rate}; best AUROC {best:.4f}, the paper's setting {paper:.4f}"
    hold(
        f"share not fitting, study of {len(rows)} trials, {WORKERS} workers",
        1 - fitting / (WORKERS * seconds),
        0.2,
        note,
    )

"""A command is killed while its thread sends: `fcer log` then sends exactly what is missing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import pytest

from fcer.tracking import log_later
from fcer.tracking.journal import FILE, is_complete, read_journal

COMMAND = """
import sys, time
from pathlib import Path
from fcer.tracking import tracked_run

with tracked_run("train", settings={"lr": 1}, work=Path(sys.argv[1])) as run:
    for fold in range(3):
        with run.child(f"member fold {fold}", {"fold": fold}) as member:
            for epoch in range(20):
                member.metrics({"val/ap": epoch / 20}, step=epoch)
    time.sleep(600)
"""


@pytest.mark.parametrize("sent", [5, 40])
@pytest.mark.filterwarnings("ignore:.*the last line was cut short:fcer.errors.FcerWarning")
def test_after_a_kill_all_that_was_written_is_logged_once(sent: int, store: str, tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", COMMAND, tmp_path], env=os.environ | {"OMP_NUM_THREADS": "1"})
    while not any(path.read_text().count('"sent"') >= sent for path in tmp_path.glob(f"runs/*/{FILE}")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (folder,) = (path.parent for path in tmp_path.glob(f"runs/*/{FILE}"))
    journal = read_journal(folder)
    assert journal.pending, "it writes faster than it sends"
    written: dict[str, list[int]] = {name: [] for name in journal.names.values()}
    for entry in journal.entries.values():
        if entry.op == "metrics":
            written[journal.names[entry.run]] += [step for key, _, step in entry.data["rows"] if key == "val/ap"]
    delivery = log_later(folder)
    assert delivery is not None and not delivery.refused and is_complete(folder)
    client = mlflow.MlflowClient(store)
    top = read_journal(folder).run_ids["1"]
    experiment = client.get_run(top).info.experiment_id
    below = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{top}'")
    for run in (client.get_run(top), *below):
        steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "val/ap")]
        assert sorted(steps) == written.pop(run.info.run_name)
        assert run.info.status in ("FINISHED", "KILLED")
    assert not written, "no run is missing, none is there twice"

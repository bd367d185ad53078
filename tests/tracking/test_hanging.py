"""A server that accepts and never answers: computing does not wait for it, and the end does not for ever."""

import time
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest

from fcer.commands import log
from fcer.config.resolve import resolve
from fcer.errors import FcerError, FcerWarning
from fcer.tracking import TrackedRun, tracked_run
from fcer.tracking.journal import FILE
from mlflow_hanging import HangingProxy
from mlflow_server import Server

EPOCHS = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def way(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingProxy]:
    way = HangingProxy(server.port)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", way.uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    yield way
    way.close()


def share_of_logging(run: TrackedRun) -> float:
    """Which part of some epochs' time, waiting included, goes into logging them."""
    logging, begun = 0.0, time.perf_counter()
    for epoch in range(EPOCHS):
        sum(k * k for k in range(500_000))
        computed = time.perf_counter()
        run.metrics({"train/loss": 1 / (epoch + 1), "val/auroc": 0.5}, step=epoch)
        logging += time.perf_counter() - computed
    return logging / (time.perf_counter() - begun)


def test_a_server_that_hangs_costs_a_fit_nothing(way: HangingProxy, server: Server, tmp_path: Path):
    """The best of some turns: what else the machine does may meet the one or the other part."""
    with (
        pytest.raises(FcerError, match=r"^the results are complete on disk, but .* lacks \d+ entries .*: fcer log /"),
        pytest.warns(FcerWarning, match=r"does not answer \(.*timed out.*\); going on, everything is kept in /"),
        tracked_run("train", settings={}, work=tmp_path) as run,
    ):
        way.hang()
        with run.child("member fold 0", {}) as member:
            shares = [share_of_logging(member) for _ in range(5)]
        assert "/" in member.id, "the server has never heard of it"
    assert way.unanswered
    assert min(shares) < 0.05
    _logged_later(server, tmp_path, run.id)


def _logged_later(server: Server, work: Path, top: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", server.uri)
        log.run(resolve(), work / "runs")
    client = mlflow.MlflowClient(server.uri)
    assert client.get_run(top).info.status == "FINISHED"
    experiment = client.get_run(top).info.experiment_id
    (member,) = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{top}'")
    assert len(client.get_metric_history(member.info.run_id, "train/loss")) == 5 * EPOCHS


def test_a_server_that_hangs_from_the_start_is_told_before_anything_is_computed(way: HangingProxy, tmp_path: Path):
    way.hang()
    with (
        pytest.raises(FcerError, match=r"timed out.*, before anything was computed"),
        tracked_run("train", settings={}, work=tmp_path),
    ):
        pytest.fail("nothing may be computed")
    assert not list(tmp_path.glob(f"runs/*/{FILE}"))


def test_what_the_store_knows_is_not_asked_of_one_that_hangs(way: HangingProxy, tmp_path: Path):
    with (
        pytest.raises(FcerError, match="complete on disk"),
        pytest.warns(FcerWarning, match="does not answer"),
        tracked_run("train", settings={}, work=tmp_path) as run,
    ):
        run.tags({"fcer.student": "k"})
        way.hang()
        run.metrics({"val/ap": 0.5})
        while not run._log.is_lost:
            time.sleep(0.01)
        before = way.unanswered
        assert not run.knows("fcer.student", "k") and way.unanswered == before

"""Pieces of work on the workers of a real Dask cluster."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_pieces import (
    always_lost,
    failing,
    lost_once,
    process,
    returned,
    slow,
    squared,
    talking,
    unforeseen,
    written,
)
from dask_cluster import HandMadeCluster
from fcer.errors import ConfigError, DataError, FcerError, FcerWarning
from fcer.runtime import cluster
from fcer.runtime.cluster import connected, current
from fcer.runtime.parallel import map_tasks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandMadeCluster]:
    with HandMadeCluster(tmp_path_factory.mktemp("cluster")) as made:
        made.add_worker()
        made.add_worker("--resources", "GPU=1")
        yield made


def done(function, tasks, **options) -> dict:
    return dict(map_tasks(function, tasks, workers=1, **{"label": "test", **options}))


def test_without_a_cluster_there_is_none():
    with connected(None):
        assert current() is None
    assert done(squared, [1, 2, 3]) == {1: 1, 2: 4, 3: 9}


def test_all_workers_work_and_everything_comes_back(two_workers: HandMadeCluster):
    with connected(two_workers.address):
        assert current() is not None
        assert done(squared, range(50)) == {n: n**2 for n in range(50)}
        assert set(done(process, range(50)).values()) == {worker.pid for worker in two_workers.workers}
    assert current() is None


def test_what_a_piece_says_is_said_here(two_workers: HandMadeCluster, capfd: pytest.CaptureFixture[str]):
    with connected(two_workers.address), pytest.warns(FcerWarning, match=r"^7 is odd$"):
        assert done(talking, [7]) == {7: 7}
    printed = capfd.readouterr()
    assert "at work on 7\n" in printed.out and "beware of 7\n" in printed.err


def test_a_piece_that_fails_does_not_take_the_rest_along(two_workers: HandMadeCluster):
    seen = []
    with connected(two_workers.address):
        with pytest.raises(DataError, match=r"^fire_3: cannot be used; leave it out$"):
            seen.extend(task for task, _ in map_tasks(failing, [2, 3, 4, 6], workers=1, label="convert"))
        assert sorted(seen) == [2, 4, 6]
        with pytest.raises(
            DataError, match=r"^convert: 2 of 3 failed, the rest is complete; the first: fire_[13]: can"
        ):
            list(map_tasks(failing, [1, 2, 3], workers=1, label="convert"))


def test_pieces_work_in_the_folder_of_the_command(
    two_workers: HandMadeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with connected(two_workers.address):
        assert done(written, ["here"]) == {"here": str(tmp_path)}
    assert (tmp_path / "here").read_text() == "whole"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with connected(two_workers.address):
        gone.rmdir()
        monkeypatch.setattr(cluster.Path, "cwd", lambda: gone)  # there is no asking where one is in a lost folder
        with pytest.raises(
            FcerError, match=r"^cluster: a worker cannot work in .*gone \(No such file or directory\); st"
        ):
            done(squared, [1])


def test_a_worker_of_another_version_is_refused(two_workers: HandMadeCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with (
        connected(two_workers.address),
        pytest.raises(FcerError, match=r"^cluster: a worker has fcer .*, this is 0.0.1;"),
    ):
        done(squared, [1])


def test_pieces_for_gpus_go_to_workers_that_have_one(two_workers: HandMadeCluster):
    with connected(two_workers.address):
        assert set(done(process, range(20), gpu=True).values()) == {two_workers.workers[1].pid}


def test_no_worker_with_a_gpu_is_said(tmp_path: Path):
    with HandMadeCluster(tmp_path) as made:
        made.add_worker()
        with (
            connected(made.address),
            pytest.raises(ConfigError, match=r"^device: no worker of tcp://.* has a GPU to give"),
        ):
            done(squared, [1], gpu=True)


def test_a_lost_workers_piece_is_done_again(tmp_path: Path):
    with HandMadeCluster(tmp_path) as made:
        made.add_worker()
        made.add_worker()
        with connected(made.address):
            mark = tmp_path / "mark"
            assert done(lost_once, [mark]) == {mark: "done"}
            assert done(squared, [1, 2]) == {1: 1, 2: 4}, "by the one that is left"
        assert sum(worker.poll() is None for worker in made.workers) == 1


def test_a_piece_that_loses_every_worker_is_given_up():
    """With processes of its own a cluster starts lost workers again, and would do so for ever."""
    with (
        connected("local:1"),
        pytest.raises(FcerError, match=r"^test, 1: several workers were lost at it, perhaps"),
    ):
        done(always_lost, [1])


def test_processes_here(tmp_path: Path):
    threads = {name: value for name, value in os.environ.items() if "THREADS" in name}
    with connected("local:2"):
        assert {name: value for name, value in os.environ.items() if "THREADS" in name} == threads
        assert done(squared, range(9)) == {n: n**2 for n in range(9)}
        workers = set(done(process, range(40)).values())
        assert len(workers) == 2 and os.getpid() not in workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "_WAIT_SECONDS", 1)
    with HandMadeCluster(tmp_path) as made:
        address = made.address
        made.add_worker()
        made.workers[0].kill()
        made.workers[0].wait()
        with (
            pytest.raises(FcerError, match=rf"^cluster: {address} has no worker; start some with dask worker"),
            connected(address),
        ):
            pass
    with (
        pytest.raises(FcerError, match=rf"^cluster: no scheduler answers at {address}; start one with dask scheduler"),
        connected(address),
    ):
        pass
    assert current() is None


def test_a_scheduler_that_goes_away(tmp_path: Path):
    with HandMadeCluster(tmp_path) as made:
        made.add_worker()
        seen = []
        with connected(made.address), pytest.raises(FcerError, match=r"^slow: the scheduler at tcp.* went away; start"):
            for task, _ in map_tasks(slow, range(100), workers=1, label="slow"):
                seen.append(task)
                made.kill_scheduler()
        assert 0 < len(seen) < 100


def test_waiting_for_a_worker_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "_WAIT_SECONDS", 2)
    with HandMadeCluster(tmp_path) as made:
        made.add_worker()
        with connected(made.address), pytest.warns(FcerWarning, match="has no worker left; waiting for one"):
            seen = {}
            for task, result in map_tasks(squared, range(20), workers=1, label="test"):
                seen[task] = result
                if len(seen) == 1:
                    made.workers.pop().kill()
                    threading.Timer(5, made.add_worker).start()
        assert seen == {n: n**2 for n in range(20)}


def test_something_unforeseen_names_its_piece(two_workers: HandMadeCluster):
    said = r"^convert, 3: ZeroDivisionError: division by zero$"
    with connected(two_workers.address), pytest.raises(FcerError, match=said):
        done(unforeseen, [2, 3], label="convert")
    with pytest.raises(FcerError, match=said):
        done(unforeseen, [2, 3], label="convert")
    with pytest.raises(FcerError, match=said):
        list(map_tasks(unforeseen, [2, 3, 4], workers=2, label="convert"))


def test_an_error_that_is_returned_is_a_result(two_workers: HandMadeCluster):
    with connected(two_workers.address):
        ((_, found),) = map_tasks(returned, [5], workers=1, label="test")
    assert isinstance(found, DataError) and isinstance(done(returned, [5])[5], DataError)


def test_pieces_are_handed_out_a_few_at_a_time(two_workers: HandMadeCluster, monkeypatch: pytest.MonkeyPatch):
    """Results that nobody has asked for yet wait in the workers' memory."""
    with connected(two_workers.address):
        client = current()._client
        submitted = []
        submit = client.submit
        monkeypatch.setattr(client, "submit", lambda *a, **k: submitted.append(1) or submit(*a, **k))
        coming = map_tasks(squared, range(100), workers=1, label="test")
        next(coming)
        assert len(submitted) <= 2 * cluster._AHEAD
        assert len(list(coming)) == 99 and len(submitted) == 100

"""The one module that knows Dask: pieces of work on the workers of a cluster.

A piece is a function of some module and one input; both travel to a worker, and what it returns travels back. Large
things stay on disk, in folders that every worker sees under the same path. A piece whose worker is lost is done again
on another one, so pieces must write whole files or none, as all of ours do.
"""

import io
import logging
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fcer import __version__
from fcer.errors import ConfigError, FcerError, warn
from fcer.runtime.threads import wait_politely

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Cluster", "connected", "current"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_WAIT_SECONDS = 15
"""For a scheduler to answer, for the first worker, and between looks at whether there are any left."""

_AHEAD = 4
"""Pieces for each thread of the workers that are handed out: enough that none waits for the next."""

_one_at_a_time = threading.Lock()
"""Workers may have several threads; ours share torch's threads, random numbers and the working directory."""

_connected: "Cluster | None" = None


class _Done(NamedTuple, Generic[Result]):
    """What a piece returned, and what it would have said in a terminal."""

    result: Result
    printed: str
    complained: str
    warned: list[Warning]


class Cluster:
    """A Dask cluster that this process hands pieces of work to."""

    def __init__(self, client: "Client", address: str) -> None:
        self._client = client
        self.address = address

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, label: str, gpu: bool = False
    ) -> Iterator[tuple[Task, Callable[[], Result]]]:
        """Yield each task as it is done, in whatever order, with what gives its result or raises its failure.

        With `gpu`, only workers that have the resource GPU are asked, one piece for each.
        """
        from distributed import Future

        if gpu and tasks:
            self._check_gpus()
        where = pickle.dumps(function), str(Path.cwd()), __version__
        how: dict[str, Any] = {"pure": False, "resources": {"GPU": 1} if gpu else None}
        waiting, running = iter(tasks), dict[Future[Any], Task]()
        try:
            while True:
                with self._answering(label):
                    # a few for each worker: all at once, thousands of results might wait in the workers' memory
                    for task in islice(waiting, max(0, _AHEAD * self._threads() - len(running))):
                        running[self._client.submit(_work, pickle.dumps(task), *where, **how)] = task
                    if not running:
                        return
                    done = self._done(list(running))
                for future in done:
                    task = running.pop(future)
                    yield task, partial(self._result, future, f"{label}, {task}")
        finally:
            # stopped early: what has not begun never will
            self._client.cancel(list(running))

    @contextmanager
    def _answering(self, label: str) -> Iterator[None]:
        from distributed import CancelledError
        from distributed.comm.core import CommClosedError

        try:
            yield
        except (CancelledError, CommClosedError):
            raise FcerError(
                f"{label}: the scheduler at {self.address} went away; start the same command again: it goes on from "
                "what is complete"
            ) from None

    def _done(self, futures: "list[Future[Any]]") -> "Iterable[Future[Any]]":
        """Those that are done, once there are some."""
        from distributed import wait

        while True:
            try:
                done: set[Future[Any]] = wait(futures, timeout=_WAIT_SECONDS, return_when="FIRST_COMPLETED").done
                return done
            except TimeoutError:
                self._warn_if_alone()

    def _result(self, future: "Future[Any]", name: str) -> Any:
        done = self._fetched(future, name)
        print(done.printed, end="")
        print(done.complained, end="", file=sys.stderr)
        for warning in done.warned:
            warnings.warn(warning, stacklevel=2)
        return done.result

    def _fetched(self, future: "Future[Any]", name: str) -> _Done[Any]:
        """A result that was lost with its worker is made again, which may take its time."""
        from distributed import KilledWorker

        while True:
            try:
                done: _Done[Any] = future.result(timeout=_WAIT_SECONDS)
                return done
            except TimeoutError:
                if future.status == "error":
                    raise  # it is the piece's own
                self._warn_if_alone()
            except KilledWorker:
                raise FcerError(f"{name}: several workers were lost at it, perhaps for want of memory") from None

    def _warn_if_alone(self) -> None:
        if not self._workers():
            warn(f"cluster: {self.address} has no worker left; waiting for one")

    def _workers(self) -> list[dict[str, Any]]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"].values())

    def _threads(self) -> int:
        return max(1, sum(int(worker["nthreads"]) for worker in self._workers()))

    def _check_gpus(self) -> None:
        if not any(worker["resources"].get("GPU") for worker in self._workers()):
            raise ConfigError(
                f"device: no worker of {self.address} has a GPU to give; start one with "
                f"dask worker {self.address} --nthreads 1 --resources GPU=1, or choose --device cpu"
            )


def current() -> Cluster | None:
    """The cluster of this process, if it has one."""
    return _connected


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Hand pieces of work to the cluster at `address` within the block; None: there is no cluster."""
    global _connected
    if address is None:
        yield
        return
    try:
        from distributed.utils import silence_logging_cmgr
    except ImportError:
        raise FcerError("cluster: it needs the package distributed: run pip install 'fcer[cluster]'") from None
    # what dask has to say of lost connections is said in our words
    with silence_logging_cmgr(logging.CRITICAL), _client(address) as client:
        _connected = Cluster(client, address)
        try:
            yield
        finally:
            _connected = None


@contextmanager
def _client(address: str) -> "Iterator[Client]":
    import dask
    from distributed import Client, LocalCluster

    if address.startswith("local:"):
        how: dict[str, Any] = {"memory_limit": 0}
        # a port of its own: with none named it would take 8787, and complain where another cluster has that
        how |= {"dashboard_address": "127.0.0.1:0"}
        # dask would have one thread a worker, and set that in the environment of this process, too
        with _deaf_to_interrupts(), dask.config.set({"distributed.nanny.pre-spawn-environ": {}}):
            count = int(address.removeprefix("local:"))
            cluster = LocalCluster(n_workers=count, threads_per_worker=1, silence_logs=logging.CRITICAL, **how)
        with cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=_WAIT_SECONDS)
    except (OSError, TimeoutError):
        raise FcerError(
            f"cluster: no scheduler answers at {address}; start one with dask scheduler, or correct --cluster"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_WAIT_SECONDS)
        except TimeoutError:
            raise FcerError(
                f"cluster: {address} has no worker; start some with dask worker {address} --nworkers 2 --nthreads 1"
            ) from None
        yield client


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that start in the block never see Ctrl-C: it is for this one to end them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(task: bytes, function: bytes, folder: str, version: str) -> _Done[Any]:
    """What a worker does with a piece: as the process that handed it over would, in the same folder."""
    if version != __version__:
        raise FcerError(f"cluster: a worker has fcer {__version__}, this is {version}; install the same on all workers")
    wait_politely()  # workers that others started have not been told
    printed, complained = io.StringIO(), io.StringIO()
    with (
        _one_at_a_time,
        _in_folder(folder),
        redirect_stdout(printed),
        redirect_stderr(complained),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", UserWarning)
        # only now: unpacking may open files, by paths that are relative to the folder
        result = pickle.loads(function)(pickle.loads(task))
    warned = [one.message for one in caught if isinstance(one.message, Warning)]
    return _Done(result, printed.getvalue(), complained.getvalue(), warned)


@contextmanager
def _in_folder(folder: str) -> Iterator[None]:
    before = Path.cwd()
    try:
        os.chdir(folder)
    except OSError as error:
        raise FcerError(
            f"cluster: a worker cannot work in {folder} ({error.strerror}); start the command in a folder that all "
            "workers share, under the same path"
        ) from None
    try:
        yield
    finally:
        os.chdir(before)

"""The worker processes of one command: started together, and never left behind."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from fcer.runtime.threads import cores
from fcer.search.worker import Begun, Ended, Job, work

__all__ = ["Worker", "run_crew", "threads_each"]


class Worker(NamedTuple):
    """A worker process, as its parent sees it."""

    process: BaseProcess
    channel: Connection

    def begun(self) -> Iterator[Begun]:
        """Its trials, as they begin; ends with the process."""
        try:
            while True:
                yield self.channel.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()

    def ended(self) -> Ended | None:
        """How the trial that has begun ended; none: the process was killed."""
        try:
            told: Ended = self.channel.recv()
        except (EOFError, ConnectionResetError):
            return None
        return told


def run_crew(job: Job, workers: int, follow: Callable[[Worker], None]) -> list[int]:
    """Start workers, call `follow` on each in a thread of its own, and wait for all; how each of them exited."""
    workers = workers or cores()
    with _started(job, workers) as crew:
        with ThreadPoolExecutor(workers) as threads:
            try:
                for done in [threads.submit(follow, worker) for worker in crew]:
                    done.result()
            finally:
                # where all went well they are over; else each thread ends with its worker
                _kill(crew)
        return [worker.process.exitcode or 0 for worker in crew]


def threads_each(workers: int) -> int:
    """Threads of one of so many workers (0: one for each core), unless the user has settled it."""
    return int(os.environ.get("OMP_NUM_THREADS", max(1, cores() // (workers or cores()))))


@contextmanager
def _started(job: Job, workers: int) -> Iterator[list[Worker]]:
    # Forked from a process that has imported torch and done nothing else: quick, and with nothing of ours in them,
    # neither torch's threads nor MLflow's connections
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fcer.search.preload"])
    crew: list[Worker] = []
    try:
        for index in range(workers):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(job, index, theirs), name=f"trials-{index}")
            with _threads(threads_each(workers)):
                process.start()
            theirs.close()  # or its end would go unnoticed
            crew.append(Worker(process, ours))
        yield crew
    finally:
        _kill(crew)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let processes that start now use so many threads each, unless the user has settled it."""
    if "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ["OMP_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


def _kill(crew: list[Worker]) -> None:
    for worker in crew:
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join()

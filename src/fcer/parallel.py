"""Independent pieces of work, side by side, with one progress bar."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from tqdm import tqdm

from fcer.errors import FcerError

__all__ = ["cores", "end_with_parent", "map_tasks"]


Task = TypeVar("Task")
Result = TypeVar("Result")


def map_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], *, workers: int, label: str
) -> Iterator[tuple[Task, Result]]:
    """Yield (task, function(task)) as each is done, in whatever order; 0 workers: one for each core.

    The first exception stops what has not begun and is raised. Results must not depend on the order.
    """
    workers = min(workers or cores(), len(tasks))
    with tqdm(total=len(tasks), desc=label, unit="fire", disable=None) as bar:
        if workers <= 1:
            for task in tasks:
                yield task, function(task)
                bar.update()
            return
        with ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
            try:
                pending: dict[Future[Result], Task] = {pool.submit(function, task): task for task in tasks}
                for future in as_completed(pending):
                    yield pending[future], future.result()
                    bar.update()
            except BrokenProcessPool:
                raise FcerError(
                    f"{label}: a worker process was killed, perhaps for want of memory; "
                    "start the same command again with fewer --workers: it goes on from what is complete"
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Those that this process may use, which in a container are often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent() -> None:
    """Workers wait for work for ever: one whose parent was killed must end by itself."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""Independent pieces of work, side by side, with one progress bar."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from tqdm import tqdm

from fcer.errors import FcerError

__all__ = ["map_tasks"]


Task = TypeVar("Task")
Result = TypeVar("Result")


def map_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], *, workers: int, label: str
) -> Iterator[tuple[Task, Result]]:
    """Yield (task, function(task)) as each is done, in whatever order; 0 workers: one for each core.

    The first exception stops what has not begun and is raised. Results must not depend on the order.
    """
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    with tqdm(total=len(tasks), desc=label, unit="fire", disable=None) as bar:
        if workers <= 1:
            for task in tasks:
                yield task, function(task)
                bar.update()
            return
        with ProcessPoolExecutor(workers) as pool:
            pending: dict[Future[Result], Task] = {pool.submit(function, task): task for task in tasks}
            try:
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

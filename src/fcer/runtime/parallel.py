"""Independent pieces of work, side by side, with one progress bar: in this process, in several, or on a cluster."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from tqdm import tqdm

from fcer.errors import FcerError
from fcer.runtime.cluster import current
from fcer.runtime.threads import cores

__all__ = ["end_with_parent", "map_tasks"]


Task = TypeVar("Task")
Result = TypeVar("Result")


def map_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int,
    label: str,
    unit: str = "fire",
    gpu: bool = False,
) -> Iterator[tuple[Task, Result]]:
    """Yield (task, function(task)) as each is done, in whatever order; 0 workers: one for each core.

    Where this process has a cluster, its workers do it, however many there are; `gpu` asks for those with a GPU. A
    piece that fails does not stop the others: they are done first, then the failure is raised, with the task's `str`
    where it does not speak for itself. Results must not depend on the order.
    """
    failures: list[FcerError] = []
    with tqdm(total=len(tasks), desc=label, unit=unit, disable=None if tasks else True, leave=False) as bar:
        for task, result_of in _finished(function, tasks, workers, label, gpu):
            try:
                result = result_of()
            except FcerError as error:
                failures.append(error)
            except Exception as error:  # whatever it is, the pieces of others are not to be lost for it
                failure = FcerError(f"{label}, {task}: {type(error).__name__}: {error}")
                failure.__cause__ = error
                failures.append(failure)
            else:
                yield task, result
            bar.update()
    if failures:
        raise _summary(failures, len(tasks), label)


def _finished(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, label: str, gpu: bool
) -> Iterator[tuple[Task, Callable[[], Result]]]:
    """Each task as it is done, with what gives its result or raises its failure."""
    cluster = current()
    if cluster is not None:
        yield from cluster.run(function, tasks, label=label, gpu=gpu)
        return
    workers = min(workers or cores(), len(tasks))
    if workers <= 1:
        for task in tasks:
            yield task, partial(function, task)
        return
    with ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
        try:
            pending: dict[Future[Result], Task] = {pool.submit(function, task): task for task in tasks}
            for future in as_completed(list(pending)):
                if isinstance(future.exception(), BrokenProcessPool):
                    raise FcerError(
                        f"{label}: a worker process was killed, perhaps for want of memory; "
                        "start the same command again with fewer --workers: it goes on from what is complete"
                    )
                # let go of at once: results of thousands of pieces would fill the memory
                yield pending.pop(future), future.result
        finally:
            pool.shutdown(cancel_futures=True)


def _summary(failures: Sequence[FcerError], tasks: int, label: str) -> FcerError:
    """The only failure as it is; of several the first, and how many there are."""
    if len(failures) == 1:
        return failures[0]
    return type(failures[0])(
        f"{label}: {len(failures)} of {tasks} failed, the rest is complete; the first: {failures[0]}"
    )


def end_with_parent() -> None:
    """Workers wait for work for ever: one whose parent was killed must end by itself."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

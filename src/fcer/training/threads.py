"""How many threads torch works with: sums in another order round differently, and training carries that on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch

__all__ = ["torch_threads", "with_threads_of_here"]

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many within the block, and as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def with_threads_of_here(function: Callable[[Task], Result]) -> Callable[[Task], Result]:
    """The function, to be called in any process with as many threads as this one has: with the very same result."""
    return partial(_with_threads, function, torch.get_num_threads())


def _with_threads(function: Callable[[Task], Result], count: int, task: Task) -> Result:
    with torch_threads(count):
        return function(task)

"""Progress of an evaluation, counted in images."""

from collections.abc import Callable
from typing import Protocol

from tqdm import tqdm

__all__ = ["Bar", "Progress", "no_bar", "terminal_bar"]


class Bar(Protocol):
    """What a tqdm bar can do, as far as it is needed here."""

    def update(self, n: int) -> object:
        """Count `n` more images."""

    def close(self) -> object:
        """There are no more."""


Progress = Callable[[int], Bar]
"""Makes a bar for a number of images; each image counts once for every time it is read."""


def terminal_bar(total: int) -> Bar:
    """A bar on a terminal, nothing elsewhere."""
    return tqdm(total=total, desc="evaluate", unit="image", disable=None, leave=False)


def no_bar(total: int) -> Bar:
    """Nothing at all."""
    return tqdm(total=total, disable=True)

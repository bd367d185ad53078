"""How every benchmark measures: both ways in turns, so that a busy moment hits both, and the best of each."""

import time
from collections.abc import Callable


def seconds(*ways: Callable[[], object], repeats: int = 5) -> list[float]:
    """The shortest time of each way over `repeats` rounds, after one round that warms up."""
    best = [float("inf")] * len(ways)
    for round_ in range(repeats + 1):
        for k, way in enumerate(ways):
            start = time.perf_counter()
            way()
            if round_:
                best[k] = min(best[k], time.perf_counter() - start)
    return best


def show(title: str, ours: float, theirs: float, floor: float, note: str = "") -> None:
    """One row of the table."""
    ratio = theirs / ours
    verdict = "ok" if ratio >= floor else "BELOW"
    print(f"{title:<58}{1e3 * theirs:>10.1f}{1e3 * ours:>10.1f}{ratio:>8.1f}x{floor:>8g}x  {verdict}  {note}")

"""How busy the machine is while a run goes on: processor, memory, disk, network and graphics card."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil  # type: ignore[import-untyped]
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

from fcer.errors import warn

__all__ = ["system_metrics"]

_SECONDS = 5


@contextmanager
def system_metrics(log: Callable[[Mapping[str, float], int], None]) -> Iterator[None]:
    """Hand a sample to `log` (values, step) every few seconds, and one at the end.

    MLflow's monitor only measures. Its own thread asks the server again and again, and ends with the first failure.
    """
    monitor: Any = SystemMetricsMonitor("", _SECONDS)  # type: ignore[no-untyped-call]
    stop = threading.Event()

    def sample(step: int) -> None:
        monitor.collect_metrics()
        log({f"system/{key}": value for key, value in monitor.aggregate_metrics().items()}, step)
        for part in monitor.monitors:
            part.clear_metrics()

    def watch() -> None:
        psutil.cpu_percent()  # the next call tells the use since this one, and each thread is told its own
        step = 0
        try:
            while not stop.wait(monitor.sampling_interval):
                sample(step)
                step += 1
            sample(step)
        except (psutil.Error, OSError) as error:
            warn(f"system metrics end here ({error})")

    thread = threading.Thread(target=watch, daemon=True, name="system metrics")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()

"""`ingest`: time and memory over the number of detections, generated for a season of 170 days."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.detection_cases import season, written

from fcer.data.detections import DetectionSettings, ingest

COUNTS = (250_000, 500_000, 1_000_000, 2_000_000)
ROOT = Path(__file__).parents[2]


def main(counts: Sequence[int] = COUNTS) -> None:
    """Print the table."""
    print("\ningest of a season's detections, one process")
    print("     rows  file MB  seconds  of CPU  us of CPU a row  peak MB  fires")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            file = written(Path(folder), season(count))
            call = f"from tests.benchmarks.detections import measure; measure({str(file)!r})"
            output = subprocess.run(
                [sys.executable, "-c", call], check=True, capture_output=True, text=True, cwd=ROOT
            ).stdout
            seconds, cpu, peak, fires = map(float, output.split())
            size = file.stat().st_size / 1e6
        row = (
            f"{count:9d}  {size:7.0f}  {seconds:7.1f}  {cpu:6.1f}  {1e6 * cpu / count:15.1f}  {peak:7.0f}  {fires:5.0f}"
        )
        print(row, flush=True)


def measure(file: str) -> None:
    """Print seconds, the peak of memory in MB, and how many fires there are."""
    begin = time.perf_counter()
    done = ingest([Path(file)], Path(file).parent / "out", DetectionSettings())
    seconds, cpu = time.perf_counter() - begin, time.process_time()
    assert sum(done.read.values()) == sum(done.dropped.values()) + done.in_fires
    print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(done.fires))

"""`ingest`: time and memory over the number of detections, generated for a season of 170 days."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.rows import grows
from tests.benchmarks.timing import apart, print_cost
from tests.helpers.detection_cases import season, written

from fcer.data.detections import DetectionSettings, ingest

COUNTS = (100_000, 200_000, 400_000)
"""A season of the whole country is 2 000 000."""


def main(counts: Sequence[int] = COUNTS) -> None:
    """Print one row."""
    points = []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            file = written(Path(folder), season(count))
            points.append((count, *apart("detections", f"measure({str(file)!r})")))
    grows("ingest", "detections", points)


def measure(file: str) -> None:
    """Print what `apart` reads."""

    def ingested() -> None:
        done = ingest([Path(file)], Path(file).parent / "out", DetectionSettings())
        assert sum(done.read.values()) == sum(done.dropped.values()) + done.in_fires

    print_cost(ingested)

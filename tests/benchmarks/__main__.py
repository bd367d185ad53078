"""`make bench`: every benchmark, or those named: `python -m tests.benchmarks sample_reading`.

One table; at its end what fell short, with exit code 1; the same as JSON in `work/bench.json`.
"""

import importlib
import sys
from pathlib import Path

from tests.benchmarks.rows import ROWS, broken, header, summary, write_json

from fcer.runtime.threads import wait_politely

ALL = [
    "sample_reading",
    "training",
    "busy_machine",
    "backbone_forward",
    "distillation",
    "head_fitting",
    "search_overhead",
    "prediction",
    "serving",
    "onnx_inference",
    "fcer_evaluation",
    "large_evaluation",
    "detections",
    "growth",
]


def main(names: list[str]) -> int:
    """Run them all, whatever becomes of one."""
    wait_politely()  # as the command line does, before anything imports torch
    print(header())
    for name in names:
        try:
            importlib.import_module(f"tests.benchmarks.{name}").main()
        except Exception as error:
            broken(name, error)
    write_json(Path("work/bench.json"))
    print(f"\n{summary()}\nwritten to work/bench.json")
    return 0 if all(row.kept for row in ROWS) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ALL))

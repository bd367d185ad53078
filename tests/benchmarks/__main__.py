"""`make bench`: every benchmark, or those named: `python -m tests.benchmarks sample_reading`."""

import importlib
import sys

ALL = [
    "sample_reading",
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
]

if __name__ == "__main__":
    print(f"{'':<58}{'plain ms':>10}{'fcer ms':>10}{'ratio':>9}{'floor':>9}")
    for name in sys.argv[1:] or ALL:
        importlib.import_module(f"tests.benchmarks.{name}").main()

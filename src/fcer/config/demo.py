"""The demo's settings, and when they count."""

from collections.abc import Mapping
from typing import Any

__all__ = ["DEMO", "NAMES_DATA"]

DEMO: Mapping[str, Any] = {
    "fires_per_year": 8,
    "image_size": (80, 112),
    "fire_days": (9, 13),
    "crop": 64,
    "width": 0.125,
    "member_epochs": 12,
    "member_patience": 6,
    "member_lr": 0.005,
    "member_batch_size": 4,
    "pos_weight": 10.0,
    "head_lr": 0.01,
}
"""Settings for two cores and a few minutes, as in experiments/demo.yaml: a study that names neither data nor a
configuration is this one."""

NAMES_DATA = frozenset({"data", "source", "predictions", "results", "runs", "experiment", "detections", "maps"})
"""Settings that name what is worked on: where one is given, nothing of the demo is."""

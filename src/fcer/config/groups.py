"""Settings by subject, and those that each step of a study takes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fcer.config.fields import fields
from fcer.config.settings import Config
from fcer.runtime.secrets import masked

__all__ = ["DETECTIONS", "EXPERIMENT", "HEAD", "MEMBER", "PLACES", "STEPS", "SYNTHETIC", "recorded"]

EXPERIMENT = ("data", "checkpoints", "split", "year", "members", "arch", "width", "features", "leading", "crop")

_HOW = ("device", "precision", "loader_workers")

MEMBER = (*(key for key in fields() if key.startswith("member_")), "pos_weight", "clip_norm", *_HOW)

HEAD = ("teacher", "views", "freeze", *(key for key in fields() if key.startswith("head_")))

DETECTIONS = ("detections", "layer", "confidence", "satellites", "bbox", "dates", "day", "min_detections")

SYNTHETIC = ("years", "fires_per_year", "image_size", "fire_days", "seed")

PLACES = ("work", "workers", "cluster")
"""Where the work is done and with how many: no setting of what comes out."""

_ALWAYS = ("year", "arch", "members", "anchor", "seed")
"""What runs are told apart by, whatever it is."""

_BACKBONE = ("normalization", "select_by", "threshold")
_CALIBRATION = ("miss",)
_EVALUATION = (*_CALIBRATION, "test_image", "engine", "anchor", "radii", "methods", "passes", "bootstrap")
_DATA = (*DETECTIONS, *SYNTHETIC, *PLACES)

STEPS: dict[str, tuple[str, ...]] = {
    "train": (*EXPERIMENT, "fold", *MEMBER, *_DATA),
    "distill": (*EXPERIMENT, *_BACKBONE, "anchor", *_CALIBRATION, *HEAD, *MEMBER, *_DATA),
    "evaluate": (*_EVALUATION, *EXPERIMENT, *_BACKBONE, *HEAD, *MEMBER, *_DATA),
}
"""What decides members, a student, and an evaluation of all of it."""


def recorded(config: Config, keys: Iterable[str]) -> dict[str, Any]:
    """The settings as a run records them: those that differ from their defaults, and what every run is told apart by.

    Without places, where trials are kept, and passwords; all settings are in the run's config.yaml.
    """
    told = {key: getattr(config, key) for key in keys if key not in (*PLACES, "storage")}
    defaults = fields()
    return {key: _as_typed(value) for key, value in told.items() if key in _ALWAYS or value != defaults[key].default}


def _as_typed(value: Any) -> Any:
    """Lists as one would type them, addresses without their passwords."""
    if isinstance(value, tuple):
        return masked(" ".join(map(str, value)))
    return masked(str(value)) if isinstance(value, str | Path) else value

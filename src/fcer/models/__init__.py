"""Backbones by name, their checkpoints, and fast prediction with them."""

from fcer.models.backbones import ARCHITECTURES, Architecture, Backbone, BackboneSpec, architecture, build
from fcer.models.checkpoints import CheckpointInfo, content_hash, load_checkpoint, read_info, save_checkpoint
from fcer.models.inference import Prediction, fast, predict, predict_logits
from fcer.models.released import ReleasedFold, find_released, load_released

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "Backbone",
    "BackboneSpec",
    "CheckpointInfo",
    "Prediction",
    "ReleasedFold",
    "architecture",
    "build",
    "content_hash",
    "fast",
    "find_released",
    "load_checkpoint",
    "load_released",
    "predict",
    "predict_logits",
    "read_info",
    "save_checkpoint",
]

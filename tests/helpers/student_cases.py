"""A tiny student that tests share."""

from pathlib import Path

import torch

from backbone_cases import small_backbone
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, save_student


def write_student(folder: Path, key: str) -> Path:
    """A student of NDVI, the hour of detection and the fire mask; five days."""
    backbone = small_backbone("utae_t5")
    torch.manual_seed(0)
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    years = {"train_years": (2018, 2019), "val_years": (2020,), "test_years": (2021,)}
    scaling = {"features": (3, 38, 39), "mean": (0.0,) * 23, "std": (1.0,) * 23}
    origin = {"dataset_fingerprint": "f", "code_version": "0"}
    spec = backbone.spec
    below = CheckpointInfo(spec.arch, spec.channels, spec.width, fold=0, val_ap=0.5, **years, **scaling, **origin)
    fitted = {"loss": "rmsle", "target": "std", "frozen": True, "anchor_px": 4.0, "val_auroc": 0.7, "epoch": 3}
    info = HeadInfo(head.spec.features, (), False, backbone="", teachers=("a", "b"), key=key, **fitted, **origin)
    save_student(folder, backbone, below, head, info)
    return folder

"""A student of the vegetation channels, on disk: it knows nothing, but what it says differs from pixel to pixel."""

from pathlib import Path

import torch

from backbone_cases import small_backbone
from fcer.data.channels import FEATURE_SETS
from fcer.data.normalization import released
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, save_student

FEATURES = FEATURE_SETS["vegetation"]


def write_vegetation_student(folder: Path, key: str = "k", *, arch: str = "utae_t5", anchor_px: float = 3.0) -> Path:
    return write_student(folder, key, features="vegetation", arch=arch, anchor_px=anchor_px)


def write_student(folder: Path, key: str = "k", *, features: str, arch: str, anchor_px: float = 3.0) -> Path:
    """A student of a named set of features."""
    seen = FEATURE_SETS[features]
    backbone = small_backbone(arch, len(seen))
    torch.manual_seed(0)
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    statistics = released((2018, 2019))
    spec = backbone.spec
    origin = {"dataset_fingerprint": "f", "code_version": "0.0.7"}
    below = CheckpointInfo(
        spec.arch,
        spec.channels,
        spec.width,
        fold=0,
        train_years=(2018, 2019),
        val_years=(2020,),
        test_years=(2021,),
        features=seen,
        mean=statistics.mean,
        std=statistics.std,
        val_ap=0.5,
        **origin,
    )
    fitted = {"loss": "rmsle", "target": "std", "frozen": True, "anchor_px": anchor_px, "val_auroc": 0.7, "epoch": 3}
    info = HeadInfo(head.spec.features, (), False, backbone="", teachers=("a", "b"), key=key, **fitted, **origin)
    save_student(folder, backbone, below, head, info)
    return folder

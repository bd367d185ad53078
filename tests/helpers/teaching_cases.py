"""What the tests of distillation share: three narrow members that were never trained, and what they teach."""

import dataclasses
from pathlib import Path

import torch

from fcer.data.dataset import Dataset
from fcer.data.folds import fair_folds
from fcer.models.backbones import build
from fcer.models.checkpoints import CheckpointInfo, save_checkpoint
from fcer.models.members import Member, fold_file, load_members
from fcer.training.teaching import Teaching
from training_cases import FEATURES


def save_members(folder: Path, dataset: Dataset, arch: str = "unet_t1", year: int = 2021) -> list[Member]:
    """Random weights, biased so that some pixels are taken for fire."""
    for fold in fair_folds(year):
        torch.manual_seed(fold.number)
        backbone = build(arch, len(FEATURES), 1 / 16)
        normalization = dataset.normalization(fold.train)
        info = CheckpointInfo(
            arch=arch,
            channels=len(FEATURES),
            width=1 / 16,
            fold=fold.number,
            train_years=fold.train,
            val_years=fold.validation,
            test_years=fold.test,
            features=FEATURES,
            mean=normalization.mean,
            std=normalization.std,
            val_ap=0.1 * (1 + fold.number),
            dataset_fingerprint="f",
            code_version="0",
        )
        save_checkpoint(fold_file(folder, fold.number), backbone, info)
    return load_members(folder, arch, fair_folds(year), FEATURES)


def make_teaching(dataset: Dataset, members: list[Member], **how: object) -> Teaching:
    return dataclasses.replace(Teaching(dataset, members, members[1], crop=32), **how)

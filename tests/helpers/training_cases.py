"""What the tests of training share: tiny data, quick settings, and how two members are compared."""

import dataclasses
from pathlib import Path

import torch
from safetensors.torch import load_file

import backbone_cases  # noqa: F401  (one thread for torch)
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.folds import WSTS
from fcer.training import MemberSettings
from fcer.training.epochs import EpochRecord

YEARS = (2018, 2019, 2020, 2021)
FEATURES = (3, 38, 39)
FOLD = WSTS[0]

QUICK = MemberSettings(
    arch="unet_t1",
    width=1 / 16,
    features=FEATURES,
    crop=32,
    epochs=3,
    lr=3e-3,
    batch_size=8,
    patience=3,
    device="cpu",
)
"""The fastest that there is; a second for all epochs."""

ATTENTIVE = dataclasses.replace(QUICK, arch="utae_t5", batch_size=4)
"""With dropout and attention, which draw random numbers and keep batch-norm statistics of their own."""


def tiny_data(root: Path) -> Dataset:
    return open_dataset(root, YEARS, features=FEATURES, crop=32, cache=root.parent / "cache", workers=1)


def same_weights(a: Path, b: Path) -> bool:
    """Bit by bit."""
    left, right = load_file(a), load_file(b)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def untimed(records: list[EpochRecord]) -> list[EpochRecord]:
    return [record._replace(seconds=0.0) for record in records]

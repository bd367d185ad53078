"""What several commands need of an experiment: its data, its folds, its members."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fcer.commands.synthesize import synthetic_data
from fcer.config.settings import Config
from fcer.data.channels import feature_indices
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.folds import SPLITS, Fold, fair_folds, years_of
from fcer.data.samples import TEST_LEADING_DAYS, Samples
from fcer.models.backbones import architecture
from fcer.training import HeadSettings, MemberSettings

__all__ = [
    "central_samples",
    "checkpoint_folder",
    "ensemble_years",
    "evaluated_samples",
    "head_settings",
    "member_folds",
    "member_settings",
    "open_data",
    "test_years",
]


def test_years(config: Config) -> list[int]:
    """The years that are tested on: all, or those of the folds that test on the named one."""
    folds = SPLITS[config.split]
    return list(years_of(folds if config.year == "all" else fair_folds(int(config.year), folds)))


def ensemble_years(config: Config) -> list[int]:
    """One test year for each ensemble: years that a fold tests on together have the same members and student."""
    return sorted({member_folds(config, year)[0].test[0] for year in test_years(config)})


def member_folds(config: Config, year: int) -> list[Fold]:
    """The fold of each member of a test year's ensemble: the fair ones in order, again and again."""
    folds = fair_folds(year, SPLITS[config.split])
    return [folds[k % len(folds)] for k in range(config.members)]


def open_data(config: Config, years: Sequence[int], *, whole: bool = False) -> Dataset:
    """The named dataset, or the synthetic one, as far as `years` need it; `whole` images are never too small."""
    return open_dataset(
        config.data or synthetic_data(config),
        sorted(set(years)),
        features=feature_indices(config.features),
        crop=None if whole else config.crop,
        cache=config.work / "cache",
        workers=config.workers,
    )


member_settings = MemberSettings.of
head_settings = HeadSettings.of


def checkpoint_folder(config: Config, dataset: Dataset) -> Path:
    """The named folder, or one of its own for these settings and this data: others never meet its members."""
    if config.checkpoints is not None:
        return config.checkpoints
    settings = {key: value for key, value in asdict(member_settings(config)).items() if key != "device"}
    years = {fire.year for fire in dataset.catalog.fires}
    decided_by = {"data": dataset.fingerprint(years), **settings}
    key = hashlib.sha256(json.dumps(decided_by).encode()).hexdigest()[:12]
    return config.work / "checkpoints" / f"{config.arch}-{key}"


def central_samples(config: Config, dataset: Dataset, years: Sequence[int]) -> Samples:
    """Central crops of `years`, the same labels for every backbone; members standardise them themselves."""
    return _samples(config, dataset, years, config.crop)


def evaluated_samples(config: Config, dataset: Dataset, years: Sequence[int]) -> Samples:
    """What of the test `years` is predicted and scored: the central crops, or with `test_image: full` all of it."""
    return _samples(config, dataset, years, None if config.test_image == "full" else config.crop)


def _samples(config: Config, dataset: Dataset, years: Sequence[int], crop: int | None) -> Samples:
    return Samples(
        dataset.fires(years),
        days=architecture(config.arch).days,
        features=feature_indices(config.features),
        crop=crop,
        leading=TEST_LEADING_DAYS,
    )

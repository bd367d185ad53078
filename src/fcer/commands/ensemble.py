"""The ensemble of a test year: its members, read or trained, and the one that is the student's backbone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fcer.commands.study import central_samples, member_folds, open_data
from fcer.commands.train import compare_members, train_members, trained_members
from fcer.config.settings import Config
from fcer.data.channels import feature_indices
from fcer.data.dataset import Dataset
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.models.ensemble import choose_backbone, selection_aps
from fcer.models.members import Member, load_members
from fcer.runtime.cluster import current
from fcer.tracking import TrackedRun
from fcer.training import Teaching, put_on

__all__ = ["YearEnsemble", "teaching_of", "year_ensembles"]


@dataclass(frozen=True)
class YearEnsemble:
    """The fair members of a test year."""

    year: int
    members: list[Member]
    backbone: Member
    """The one with the median AP."""
    shared: Normalization | None
    """Statistics that all members' inputs are standardised with; none: each with its own."""


def year_ensembles(
    config: Config, years: Sequence[int], tracked: TrackedRun, *, compare: bool = True
) -> Iterator[YearEnsemble]:
    """The ensemble of each test year, from `checkpoints` or with members trained where they are not there yet.

    All members are trained before the first ensemble is given. With `compare`, those that were trained here are then
    scored on the test year; without, no file of it is read.
    """
    if config.checkpoints is None:
        train_members(config, [member_folds(config, year) for year in years], tracked)
    for year in years:
        yield _year_ensemble(config, year, tracked, compare)


def _year_ensemble(config: Config, year: int, tracked: TrackedRun, compare: bool) -> YearEnsemble:
    folds = member_folds(config, year)
    if config.checkpoints is None:
        members = trained_members(config, folds)
        if compare:
            compare_members(config, year, members, tracked)
    else:
        members = load_members(config.checkpoints, config.arch, folds, feature_indices(config.features))
    # on a cluster it is for the workers to have the GPU that was asked for; a backbone is trained along here
    asked_elsewhere = current() is not None and config.device == "cuda" and config.freeze
    put_on(members, "auto" if asked_elsewhere else config.device)

    def validation(member: Member) -> Samples:
        return central_samples(config, open_data(config, member.fold.validation), member.fold.validation)

    aps = selection_aps(members, config.select_by, validation)
    backbone = choose_backbone(members, aps)
    tracked.params({f"backbone_{year}": backbone.path.name})
    print(f"{year}: {len(members)} members, backbone {backbone.path.name} (median {config.select_by})")
    return YearEnsemble(year, members, backbone, backbone.normalization if config.normalization == "backbone" else None)


def teaching_of(config: Config, ensemble: YearEnsemble, dataset: Dataset) -> Teaching:
    """How an ensemble teaches its student on the backbone's training and validation years, which `dataset` holds."""
    return Teaching(
        dataset,
        ensemble.members,
        ensemble.backbone,
        ensemble.shared,
        config.crop,
        config.views,
        config.seed,
        config.device,
    )

"""The ensemble of a test year: its members, read or trained, and the one that is the student's backbone."""

from dataclasses import dataclass

from fcer.commands.study import central_samples, member_folds, open_data
from fcer.commands.train import compare_members, train_members
from fcer.config import Config
from fcer.data.channels import feature_indices
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.models.ensemble import choose_backbone, selection_aps
from fcer.models.members import Member, load_members
from fcer.tracking import TrackedRun
from fcer.training import World, choose_device

__all__ = ["YearEnsemble", "year_ensemble"]


@dataclass(frozen=True)
class YearEnsemble:
    """The fair members of a test year."""

    year: int
    members: list[Member]
    backbone: Member
    """The one with the median AP."""
    shared: Normalization | None
    """Statistics that all members' inputs are standardised with; none: each with its own."""


def year_ensemble(config: Config, year: int, tracked: TrackedRun, *, compare: bool = True) -> YearEnsemble:
    """The ensemble from `checkpoints`, or with members trained where they are not there yet.

    With `compare`, members that were trained here are then scored on the test year; without, no file of it is read.
    """
    folds = member_folds(config, year)
    if config.checkpoints is None:
        members = train_members(config, folds, tracked)
        if compare:
            compare_members(config, year, members, tracked)
    else:
        members = load_members(config.checkpoints, config.arch, folds, feature_indices(config.features))
    device = choose_device(config.device, World())
    for member in members:
        member.backbone.to(device)

    def validation(member: Member) -> Samples:
        return central_samples(config, open_data(config, member.fold.validation), member.fold.validation)

    aps = selection_aps(members, config.select_by, validation)
    backbone = choose_backbone(members, aps)
    tracked.params({f"backbone_{year}": backbone.path.name})
    print(f"{year}: {len(members)} members, backbone {backbone.path.name} (median {config.select_by})")
    return YearEnsemble(year, members, backbone, backbone.normalization if config.normalization == "backbone" else None)

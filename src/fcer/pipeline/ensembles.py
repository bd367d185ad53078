"""The ensemble of a test year: its members, read or trained, and the one that is the student's backbone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fcer.data.folds import NO_YEAR
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.errors import DataError
from fcer.models.ensemble import choose_backbone, selection_aps
from fcer.models.members import Member
from fcer.pipeline.members import compare_members, members_of
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.study_data import Say, StudyData
from fcer.runtime.cluster import current
from fcer.training import Teaching, put_on

__all__ = ["YearEnsemble", "open_ensemble", "teaching_of"]


@dataclass(frozen=True)
class YearEnsemble:
    """The fair members of a test year."""

    year: int
    members: list[Member]
    backbone: Member
    """The one with the median AP."""
    shared: Normalization | None
    """Statistics that all members' inputs are standardised with; none: each with its own."""


def open_ensemble(data: StudyData, year: int, log: RunLog, say: Say, *, compare: bool) -> YearEnsemble:
    """The ensemble of a year, whose members are there.

    With `compare`, members that were trained here are scored on the test year; without, no file of it is read.
    """
    config = data.config
    members = members_of(data, data.member_folds(year))
    if compare and config.checkpoints is None and year != NO_YEAR:
        compare_members(data, year, members, log, say)
    # on a cluster it is for the workers to have the GPU that was asked for; a backbone is trained along here
    asked_elsewhere = current() is not None and config.device == "cuda" and config.freeze
    put_on(members, "auto" if asked_elsewhere else config.device)

    def validation(member: Member) -> Samples:
        try:
            return data.choosing_samples(member.fold.validation, apart=member.apart)
        except DataError as error:
            raise DataError(
                f"select_by: {config.select_by} needs the validation years of {member.path.name} ({error}); add them, "
                "or use val_ap, which members that were trained here carry, or file_ap for released ones"
            ) from error

    backbone = choose_backbone(members, selection_aps(members, config.select_by, validation))
    log.params({f"backbone_{year}": backbone.path.name})
    say(f"{year}: {len(members)} members, backbone {backbone.path.name} (median {config.select_by})")
    return YearEnsemble(year, members, backbone, backbone.normalization if config.normalization == "backbone" else None)


def teaching_of(data: StudyData, ensemble: YearEnsemble, families: Mapping[str, Path] | None = None) -> Teaching:
    """How an ensemble, or another method, teaches its student on the backbone's training and validation years.

    `families` are the weights of that method, where it takes a training of its own.
    """
    config, fold = data.config, ensemble.backbone.fold
    # other members' validation years too, since each may tell where it errs on fires that it did not learn from
    others = [year for member in ensemble.members for year in member.fold.validation]
    return Teaching(
        data.open((*fold.train, *fold.validation, *others)),
        ensemble.members,
        ensemble.backbone,
        ensemble.shared,
        config.crop,
        config.views,
        config.seed,
        config.device,
        config.teacher,
        config.passes,
        families or {},
    )

"""The predicted maps of a test year, made with its ensemble."""

from pathlib import Path

from fcer.commands import settings_of
from fcer.commands.study import central_samples, open_data, test_years
from fcer.commands.train import train_year
from fcer.config import Config
from fcer.data.channels import feature_indices
from fcer.data.folds import fair_folds
from fcer.data.samples import Samples
from fcer.models.ensemble import choose_backbone, selection_aps, write_ensemble_maps
from fcer.models.members import Member, load_members
from fcer.resolve import Resolved, to_yaml
from fcer.tracking import tracked_run

__all__ = ["predict_years"]


def predict_years(resolved: Resolved, out: Path) -> list[Path]:
    """Write `predictions_YEAR.npz` for each test year, with members from checkpoints or trained now."""
    config = resolved.config
    years = {year: out / f"predictions_{year}.npz" for year in test_years(config)}
    if config.checkpoints is not None:
        for year, path in years.items():
            features = feature_indices(config.features)
            _predict_year(config, year, load_members(config.checkpoints, config.arch, fair_folds(year), features), path)
    else:
        with tracked_run("evaluate", settings=settings_of(config, "evaluate"), config=to_yaml(resolved)) as tracked:
            for year, path in years.items():
                _predict_year(config, year, train_year(config, fair_folds(year), tracked), path)
    return list(years.values())


def _predict_year(config: Config, year: int, members: list[Member], path: Path) -> None:
    def validation(member: Member) -> Samples:
        return central_samples(config, open_data(config, member.fold.validation), member.fold.validation)

    backbone = choose_backbone(members, selection_aps(members, config.select_by, validation))
    print(f"{year}: {len(members)} members, backbone {backbone.path.name} (median {config.select_by})")
    samples = central_samples(config, open_data(config, [year]), [year])
    shared = backbone.normalization if config.normalization == "backbone" else None
    write_ensemble_maps(path, members, samples, year, shared=shared)
    print("student: left out, since no head was given")

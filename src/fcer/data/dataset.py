"""A dataset as experiments use it: the fires that can be used, their statistics and their fingerprint."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer.data.catalog import Catalog, open_catalog, warn_of
from fcer.data.channels import CHANNELS, raw_channel
from fcer.data.fire import Fire
from fcer.data.normalization import Normalization, computed
from fcer.data.samples import too_small
from fcer.data.survey import Survey, dataset_fingerprint, survey_fires
from fcer.errors import DataError

__all__ = ["Dataset", "open_dataset", "usable_fires"]


@dataclass(frozen=True)
class Dataset:
    """Usable fires with their surveys, and a sentence for each fire that was left out."""

    catalog: Catalog
    surveys: dict[Fire, Survey]
    left_out: tuple[str, ...]

    def fires(self, years: Iterable[int]) -> tuple[Fire, ...]:
        """The usable fires of `years` in the order of year and name."""
        return self.catalog.of(years)

    def fingerprint(self, years: Iterable[int]) -> str:
        """Of the usable fires of `years`."""
        return dataset_fingerprint((fire, self.surveys[fire]) for fire in self.fires(years))

    def profile(self, years: Iterable[int]) -> dict[str, int]:
        """The usable fires of `years` in numbers."""
        of_years = self.fires(years)
        pixels = sum(self.surveys[fire].pixels for fire in of_years)
        burning = sum(self.surveys[fire].fire_pixels for fire in of_years)
        days = sum(fire.days for fire in of_years)
        return {"fires": len(of_years), "days": days, "pixels": pixels, "fire_pixels": burning}

    def normalization(self, train_years: Sequence[int]) -> Normalization:
        """The statistics of this data's training years."""
        return computed((self.surveys[fire] for fire in self.fires(train_years)), train_years)


def open_dataset(
    root: Path,
    years: Sequence[int] | None,
    *,
    features: Sequence[int],
    crop: int | None,
    cache: Path,
    workers: int = 0,
) -> Dataset:
    """Open the fires of `years` (all there are), leave out what cannot be used and warn of it, and survey the rest."""
    found = open_catalog(root, years)
    surveys, unusable = usable_fires(found.fires, features=features, crop=crop, cache=cache, workers=workers)
    left_out = (*found.problems, *unusable)
    warn_of(left_out)
    return Dataset(Catalog(root, tuple(surveys), found.problems), surveys, left_out)


def usable_fires(
    fires: Sequence[Fire], *, features: Sequence[int], crop: int | None, cache: Path, workers: int = 0
) -> tuple[dict[Fire, Survey], list[str]]:
    """The surveys of the fires that can be used, and a sentence for each that cannot."""
    usable: dict[Fire, Survey] = {}
    problems = []
    for fire, survey in survey_fires(fires, cache=cache, workers=workers).items():
        if isinstance(survey, DataError):
            problems.append(str(survey))
        elif reason := _unusable(fire, survey, features, crop):
            problems.append(reason)
        else:
            usable[fire] = survey
    return usable, problems


def _unusable(fire: Fire, survey: Survey, features: Sequence[int], crop: int | None) -> str | None:
    """Why a fire cannot be used with these features and this crop; None where it can."""
    needed = {raw_channel(feature) for feature in features}
    for channel in survey.empty_channels():
        if channel in needed:
            return (
                f"{fire.path}: {CHANNELS[channel]} (channel {channel}) holds no value on any day; "
                "convert the fire again, or choose --features without that channel"
            )
    return too_small(fire, crop) if crop is not None else None

"""What a study would do: what is there, what is to be made, about how long that takes and how large it is."""

from collections.abc import Sequence

from fcer.data.fire import SYNTHETIC_MANIFEST
from fcer.data.folds import Fold
from fcer.models.backbones import architecture
from fcer.pipeline.members import plan_members
from fcer.pipeline.study_data import StudyData, recipe_of, synthetic_home
from fcer.training.probe import probe_training

__all__ = ["plan_study"]

_PASSES = 3
"""A pass forth and back costs about as much as three passes forth."""


def plan_study(data: StudyData, *, distils: bool, predicts: bool) -> list[str]:
    """A line for each step; nothing is written but what reading the data once leaves in the cache.

    Parameters
    ----------
    distils:
        Whether students are made, not members alone.
    predicts:
        Whether maps of the test years are.
    """
    config, ensembles = data.config, [data.member_folds(year) for year in data.ensemble_years]
    seconds, weights = probe_training(config.arch, len(data.features), config.width, config.crop)
    lines, there = [_data_line(data)], _is_there(data)
    folds = {fold.number: fold for folds in ensembles for fold in folds}
    members = sum(len(folds) for folds in ensembles)
    if config.checkpoints is not None:
        lines.append(f"members: {config.checkpoints} is to hold them")
    else:
        missing = _missing(data, ensembles) if there else [fold for folds in ensembles for fold in folds]
        longest = sum(_samples(data, fold.train) for fold in missing) * config.member_epochs * seconds
        lines.append(
            f"members: {members - len(missing)} of {members} are there, {len(missing)} to be trained: "
            f"{_duration(longest)} at most, {_size(len(missing) * weights)}"
        )
    if distils:
        cached = sum(_samples(data, (*folds[0].train, *folds[0].validation)) for folds in ensembles)
        kept = sum(1 for _ in data.work.students.glob(f"{config.arch}-*"))
        lines.append(
            f"students: {len(ensembles)}, each by {cached * config.members / len(ensembles):.0f} passes once: "
            f"{_duration(cached * config.members * seconds / _PASSES)} at most; {data.work.students} holds {kept}"
        )
    if predicts:
        images = _samples(data, [fold.test[0] for fold in folds.values() if fold.test][:1]) * len(data.test_years)
        size = images * config.crop**2 * (8 * len(config.methods) + 1)
        lines.append(f"maps: {images} images by {len(config.methods)} methods, {_size(size)} at most")
    return lines


def _data_line(data: StudyData) -> str:
    config = data.config
    if config.data is not None or config.detections:
        return f"data: {config.data or 'fires of ' + ' '.join(map(str, config.detections))}"
    recipe, home = recipe_of(config), synthetic_home(config)
    fires = len(recipe.years) * recipe.fires_per_year
    return f"data: {fires} synthetic fires, {'there' if _is_there(data) else 'to be made'}: {home}"


def _is_there(data: StudyData) -> bool:
    config = data.config
    return bool(config.data or config.detections) or (synthetic_home(config) / SYNTHETIC_MANIFEST).exists()


def _missing(data: StudyData, ensembles: Sequence[Sequence[Fold]]) -> list[Fold]:
    planned = {one.path: one for folds in ensembles for one in plan_members(data, folds)}
    return [one.slot.fold for path, one in planned.items() if not path.exists()]


def _samples(data: StudyData, years: Sequence[int]) -> int:
    """Of some years, as the data has them; of synthetic fires that are not made yet, as many as they are likely to."""
    days = architecture(data.config.arch).days
    if _is_there(data):
        return sum(len(fire.first_days(days)) for fire in data.open(years).fires(years))
    recipe = recipe_of(data.config)
    return round(len(years) * recipe.fires_per_year * (sum(recipe.fire_days) / 2 - days))


def _duration(seconds: float) -> str:
    """Few digits, since it is a guess.

    >>> _duration(30), _duration(600), _duration(7200)
    ('under a minute', 'about 10 min', 'about 2.0 h')
    """
    if seconds < 60:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"

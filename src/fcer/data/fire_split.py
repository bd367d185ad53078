"""A dataset in groups of fires instead of years, where few days hold many fires."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fcer.data.catalog import Catalog
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.fire import Fire
from fcer.data.folds import FireBox, fire_groups
from fcer.data.geotiff import import_rasterio
from fcer.data.survey import Survey
from fcer.errors import DataError

__all__ = ["open_fire_split"]


def open_fire_split(
    root: Path, *, features: Sequence[int], crop: int | None, cache: Path, workers: int = 0, seed: int = 0
) -> Dataset:
    """All fires below `root`, whatever their year: `year` of each is its group, 1 to 4."""
    found = open_dataset(root, None, features=features, crop=crop, cache=cache, workers=workers)
    surveys = found.surveys
    groups = fire_groups({_key(fire): _box(fire, survey) for fire, survey in surveys.items()}, seed)
    named = Counter(fire.name for fire in surveys)
    dealt: dict[Fire, Survey] = {}
    for fire, survey in surveys.items():
        # Two years may each have a fire of the same name; within a group names must differ
        name = fire.name if named[fire.name] == 1 else _key(fire).replace("/", "_")
        dealt[replace(fire, year=groups[_key(fire)], name=name)] = survey
    ordered = dict(sorted(dealt.items(), key=lambda item: (item[0].year, item[0].name)))
    return Dataset(Catalog(root, tuple(ordered), found.catalog.problems), ordered, found.left_out)


def _key(fire: Fire) -> str:
    return f"{fire.year}/{fire.name}"


def _box(fire: Fire, survey: Survey) -> FireBox:
    if fire.place is None or fire.place.crs is None:
        raise DataError(
            f"{fire}: does not say where it lies, so fires that touch cannot be kept together; use --split wsts"
        )
    rasterio = import_rasterio()
    from rasterio.warp import transform_bounds

    bounds = rasterio.transform.array_bounds(fire.height, fire.width, rasterio.Affine(*fire.place.transform))
    west, south, east, north = transform_bounds(fire.place.crs, "EPSG:4326", *bounds)
    return FireBox((west, south, east, north), survey.fire_pixels, survey.digest)

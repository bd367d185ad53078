"""The data of a study: named or synthetic, opened once, and the samples that models see of it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from fcer.config import Config
from fcer.data.catalog import Catalog
from fcer.data.channels import feature_indices
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.folds import SPLITS, Fold, fair_folds, years_of
from fcer.data.samples import TEST_LEADING_DAYS, Samples
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.backbones import architecture
from fcer.runtime.work import Work

__all__ = ["StudyData", "recipe_of", "synthetic_home"]

Say = Callable[[str], None]


def recipe_of(config: Config) -> Recipe:
    """What of the configuration decides synthetic fires; where no years are named, they are all of the split's."""
    years = config.years or years_of(SPLITS[config.split])
    small, large = config.image_size
    short, long = config.fire_days
    return Recipe(years, config.fires_per_year, (small, large), (short, long), config.seed)


def synthetic_home(config: Config) -> Path:
    """A folder named by the recipe: other settings never meet its fires."""
    return config.work / f"synthetic-{recipe_of(config).key()}"


class StudyData:
    """What a configuration says of data, years and folds. A year is opened when it is first asked for, and once."""

    def __init__(self, config: Config, say: Say = print) -> None:
        self.config = config
        self.work = Work(config.work)
        self.features = feature_indices(config.features)
        self._say = say
        self._opened: dict[int | None, dict[int, Dataset]] = {}

    @cached_property
    def root(self) -> Path:
        """The named folder, or that of the synthetic fires, made where they are not there yet."""
        return self.config.data or self.synthetic()

    def synthetic(self, *, geotiff: bool = False) -> Path:
        """The folder of the configured synthetic fires."""
        home = synthetic_home(self.config)
        if synthesize(recipe_of(self.config), home, geotiff=geotiff, workers=self.config.workers):
            self._say(f"no data was named, so synthetic fires were made: {home}")
        return home

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Of the split."""
        return SPLITS[self.config.split]

    @property
    def test_years(self) -> list[int]:
        """The years that are tested on: all, or those of the folds that test on the named one."""
        year = self.config.year
        return list(years_of(self.folds if year == "all" else fair_folds(int(year), self.folds)))

    @property
    def ensemble_years(self) -> list[int]:
        """One test year for each ensemble: years that a fold tests on together have the same members and student."""
        return sorted({self.member_folds(year)[0].test[0] for year in self.test_years})

    def member_folds(self, year: int) -> list[Fold]:
        """The fold of each member of a test year's ensemble: the fair ones in order, again and again."""
        folds = fair_folds(year, self.folds)
        return [folds[k % len(folds)] for k in range(self.config.members)]

    def open(self, years: Sequence[int], *, whole: bool = False) -> Dataset:
        """The fires of `years`; images of `whole` ones are never too small."""
        crop = None if whole else self.config.crop
        opened = self._opened.setdefault(crop, {})
        wanted = sorted(set(years))
        if new := [year for year in wanted if year not in opened]:
            opened |= self._open(new, crop)
        return _joined([opened[year] for year in wanted])

    def _open(self, years: list[int], crop: int | None) -> dict[int, Dataset]:
        how = {"features": self.features, "crop": crop, "cache": self.work.surveys, "workers": self.config.workers}
        return _by_year(open_dataset(self.root, years, **how), years)  # type: ignore[arg-type]  # of each its own kind

    def central_samples(self, years: Sequence[int]) -> Samples:
        """Central crops of `years`, the same labels for every backbone; members standardise them themselves."""
        return self._samples(self.open(years), years, self.config.crop)

    def test_samples(self, year: int) -> Samples:
        """What of a test year is predicted and scored: the central crops, or with `test_image: full` all of it."""
        whole = self.config.test_image == "full"
        return self._samples(self.open([year], whole=whole), [year], None if whole else self.config.crop)

    def _samples(self, dataset: Dataset, years: Sequence[int], crop: int | None) -> Samples:
        return Samples(
            dataset.fires(years),
            days=architecture(self.config.arch).days,
            features=self.features,
            crop=crop,
            leading=TEST_LEADING_DAYS,
        )


def _by_year(dataset: Dataset, years: Sequence[int]) -> dict[int, Dataset]:
    """The same fires, year by year; problems stay with the first, since they have been told."""
    catalog, parts = dataset.catalog, {}
    for year in years:
        fires = tuple(fire for fire in catalog.fires if fire.year == year)
        surveys = {fire: dataset.surveys[fire] for fire in fires}
        parts[year] = Dataset(Catalog(catalog.root, fires, ()), surveys, ())
    first = parts[years[0]]
    told = Catalog(catalog.root, first.catalog.fires, catalog.problems)
    return {**parts, years[0]: Dataset(told, first.surveys, dataset.left_out)}


def _joined(parts: Sequence[Dataset]) -> Dataset:
    catalogs = [part.catalog for part in parts]
    fires = tuple(fire for catalog in catalogs for fire in catalog.fires)
    problems = tuple(problem for catalog in catalogs for problem in catalog.problems)
    surveys = {fire: survey for part in parts for fire, survey in part.surveys.items()}
    left_out = tuple(sentence for part in parts for sentence in part.left_out)
    return Dataset(Catalog(catalogs[0].root, fires, problems), surveys, left_out)

"""The data of a study: named or synthetic, opened once, and the samples that models see of it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from fcer.config import Config
from fcer.data.calibration_split import calibrating, choosing
from fcer.data.catalog import Catalog
from fcer.data.channels import feature_indices
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.detections import DetectionSettings, Ingested, ingest, sources_of
from fcer.data.fire import SYNTHETIC_MANIFEST, Fire
from fcer.data.fire_split import open_fire_split
from fcer.data.folds import GROUPS, NO_YEAR, SPLITS, Fold, fair_folds, operational_folds, years_of
from fcer.data.samples import Samples
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.errors import ConfigError
from fcer.models.backbones import architecture
from fcer.runtime.work import Work

__all__ = ["StudyData", "detection_settings", "recipe_of", "synthetic_home"]

Say = Callable[[str], None]


def recipe_of(config: Config) -> Recipe:
    """What of the configuration decides synthetic fires; where no years are named, they are all of the split's."""
    # groups of fires are dealt from any years
    years = config.years or years_of(SPLITS["wsts" if config.split == "fires" else config.split])
    small, large = config.image_size
    short, long = config.fire_days
    return Recipe(years, config.fires_per_year, (small, large), (short, long), config.seed)


def synthetic_home(config: Config) -> Path:
    """A folder named by the recipe: other settings never meet its fires."""
    return config.work / f"synthetic-{recipe_of(config).key()}"


def detection_settings(config: Config) -> DetectionSettings:
    """What of the configuration decides fires from detections."""
    return DetectionSettings(
        confidence=config.confidence,
        satellites=config.satellites,
        bbox=config.bbox,
        dates=config.dates,
        day=config.day,
        min_detections=config.min_detections,
    )


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
        """The named folder, that of fires made of the named detections, or that of synthetic fires."""
        if self.config.data is not None:
            return self.config.data
        return self.ingested(self.config.detections)[0] if self.config.detections else self.synthetic()

    def ingested(self, files: Sequence[Path]) -> tuple[Path, Ingested]:
        """The folder of the fires in some files of detections, and what became of each detection."""
        settings = detection_settings(self.config)
        folder = self.config.work / f"detections-{sources_of(files, settings, self.config.layer)['key']}"
        done = ingest(files, folder, settings, self.config.layer)
        read = sum(done.read.values())
        self._say(f"{folder}: {len(done.fires)} fires of {read} detections, {done.in_fires} of them in fires")
        return folder, done

    @property
    def is_synthetic(self) -> bool:
        """Whether the fires never burnt: whoever made them left a note."""
        return (self.root / SYNTHETIC_MANIFEST).exists()

    def synthetic(self, *, geotiff: bool = False) -> Path:
        """The folder of the configured synthetic fires."""
        home = synthetic_home(self.config)
        if synthesize(recipe_of(self.config), home, geotiff=geotiff, workers=self.config.workers):
            self._say(f"no data was named, so synthetic fires were made: {home}")
        return home

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Of the split; with `year: none` those that hold nothing out."""
        folds = SPLITS[self.config.split]
        return operational_folds(folds) if self.holds_nothing_out else folds

    @property
    def holds_nothing_out(self) -> bool:
        """Whether the study is for operations: no year is tested on."""
        return self.config.year == "none"

    @property
    def test_years(self) -> list[int]:
        """The years that are tested on: all, or those of the folds that test on the named one."""
        year = self.config.year
        if self.holds_nothing_out:
            raise ConfigError("year: none holds no year out, so that there is nothing to test on; name one, or all")
        if self.config.split == "fires" and year == Config.year:
            year = GROUPS[-1]  # the default is a year, and groups of fires have none
        return list(years_of(self.folds if year == "all" else fair_folds(int(year), self.folds)))

    @property
    def ensemble_years(self) -> list[int]:
        """One test year for each ensemble: years that a fold tests on together have the same members and student."""
        if self.holds_nothing_out:
            return [NO_YEAR]
        return sorted({self.member_folds(year)[0].test[0] for year in self.test_years})

    def member_folds(self, year: int) -> list[Fold]:
        """The fold of each member of a test year's ensemble: the fair ones in order, again and again."""
        folds = self.folds if year == NO_YEAR else fair_folds(year, self.folds)
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
        config, cache = self.config, self.work.surveys
        if config.split == "fires":
            groups = open_fire_split(
                self.root, features=self.features, crop=crop, cache=cache, workers=config.workers, seed=config.seed
            )
            return _by_year(groups, GROUPS)
        dataset = open_dataset(self.root, years, features=self.features, crop=crop, cache=cache, workers=config.workers)
        return _by_year(dataset, years)

    def central_samples(self, years: Sequence[int]) -> Samples:
        """Central crops of `years`, the same labels for every backbone; members standardise them themselves."""
        return self._samples(self.open(years).fires(years), self.config.crop)

    def choosing_samples(self, years: Sequence[int], *, apart: bool) -> Samples:
        """Those of validation years that may choose something; all, unless some were kept `apart`."""
        fires = self.open(years).fires(years)
        return self._samples(choosing(fires) if apart else fires, self.config.crop)

    def calibration_samples(self, years: Sequence[int], *, apart: bool) -> Samples:
        """Those of validation years that calibrate; all, unless some were kept `apart`."""
        fires = self.open(years).fires(years)
        return self._samples(calibrating(fires) if apart else fires, self.config.crop)

    def test_samples(self, year: int) -> Samples:
        """What of a test year is predicted and scored: the central crops, or with `test_image: full` all of it."""
        whole = self.config.test_image == "full"
        return self._samples(self.open([year], whole=whole).fires([year]), None if whole else self.config.crop)

    def _samples(self, fires: Sequence[Fire], crop: int | None) -> Samples:
        return Samples(
            fires,
            days=architecture(self.config.arch).days,
            features=self.features,
            crop=crop,
            leading=max(self.config.leading, architecture(self.config.arch).days),
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

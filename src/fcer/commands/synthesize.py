"""`fcer synthesize`: synthetic fires, to start without the real dataset."""

from pathlib import Path

from fcer.config.resolve import Resolved
from fcer.config.settings import Config
from fcer.data.folds import SPLITS, years_of
from fcer.data.synthetic.fires import Recipe, synthesize

__all__ = ["recipe_of", "run", "synthetic_data"]


def run(resolved: Resolved) -> None:
    """Write the fires and say where they are."""
    config = resolved.config
    recipe = recipe_of(config)
    out = config.out or _home(config, recipe)
    made = synthesize(recipe, out, geotiff=config.geotiff, workers=config.workers)
    total = len(recipe.years) * recipe.fires_per_year
    print(f"{out}: {total} synthetic fires of {len(recipe.years)} years ({made} new)")
    print(f"next: fcer inspect --data {out}")


def synthetic_data(config: Config, *, geotiff: bool = False) -> Path:
    """The folder of the configured synthetic fires, made where they are not there yet."""
    recipe = recipe_of(config)
    home = _home(config, recipe)
    if synthesize(recipe, home, geotiff=geotiff, workers=config.workers):
        print(f"no data was named, so synthetic fires were made: {home}")
    return home


def recipe_of(config: Config) -> Recipe:
    """What of the configuration decides synthetic fires; where no years are named, they are all of the split's."""
    years = config.years or years_of(SPLITS[config.split])
    small, large = config.image_size
    short, long = config.fire_days
    return Recipe(years, config.fires_per_year, (small, large), (short, long), config.seed)


def _home(config: Config, recipe: Recipe) -> Path:
    """A folder named by the recipe: other settings never meet its fires."""
    return config.work / f"synthetic-{recipe.key()}"

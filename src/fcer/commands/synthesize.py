"""`fcer synthesize`: synthetic fires, to start without the real dataset."""

from fcer.config import Resolved
from fcer.data.synthetic.fires import synthesize
from fcer.pipeline.study_data import recipe_of, synthetic_home

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Write the fires and say where they are."""
    config = resolved.config
    recipe = recipe_of(config)
    out = config.out or synthetic_home(config)
    made = synthesize(recipe, out, geotiff=config.geotiff, workers=config.workers)
    total = len(recipe.years) * recipe.fires_per_year
    print(f"{out}: {total} synthetic fires of {len(recipe.years)} years ({made} new)")
    print(f"next: fcer inspect --data {out}")

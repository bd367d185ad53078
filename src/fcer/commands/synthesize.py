"""`fcer synthesize`: synthetic fires, to start without the real dataset."""

from fcer.commands.launched import launched_run
from fcer.config import Resolved
from fcer.data.synthetic.fires import synthesize
from fcer.pipeline.study_data import recipe_of, synthetic_home

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Write the fires and say where they are."""
    config = resolved.config
    recipe = recipe_of(config)
    out = config.out or synthetic_home(config)
    with launched_run("synthesize", resolved) as log:
        made = synthesize(recipe, out, geotiff=config.geotiff, workers=config.workers)
        total = len(recipe.years) * recipe.fires_per_year
        said = f"{out}: {total} synthetic fires of {len(recipe.years)} years ({made} new)"
        log.note(said)
        print(said)
    print(f"next: fcer inspect --data {out}")

"""`fcer inspect`: what a dataset holds."""

from fcer.commands.launched import launched_run
from fcer.config import Resolved
from fcer.data.inspection import Inspection, inspect, to_text
from fcer.errors import DataError
from fcer.pipeline.study_data import StudyData

__all__ = ["run"]

_LEAST_CROP = 32


def run(resolved: Resolved) -> None:
    """Print the inspection; a dataset without a single usable fire is an error."""
    config = resolved.config
    data = StudyData(config)
    with launched_run("inspect", resolved) as log:
        # Whoever names no crop asks what is there, not what is large enough for the usual one
        asked = resolved.origins["crop"] != "default"
        found = _inspected(data, config.crop if asked else _LEAST_CROP)
        said = to_text(found)
        if not asked and (small := _fires(found) - _fires(_inspected(data, config.crop))):
            said += f"\n\n{small} fires are smaller than the usual crop of {config.crop} px: give a smaller --crop"
        print(said)
        log.note(f"```\n{said}\n```")
        if not found.years:
            raise DataError(f"{data.root}: not one fire in it can be used; the reasons are listed above")


def _inspected(data: StudyData, crop: int) -> Inspection:
    workers = data.config.workers
    return inspect(data.root, features=data.features, crop=crop, cache=data.work.surveys, workers=workers)


def _fires(found: Inspection) -> int:
    return sum(summary.fires for summary in found.years)

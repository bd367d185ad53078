"""`fcer inspect`: what a dataset holds."""

from fcer.config import Resolved
from fcer.data.inspection import inspect, to_text
from fcer.errors import DataError
from fcer.pipeline.study_data import StudyData

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Print the inspection; a dataset without a single usable fire is an error."""
    config = resolved.config
    data = StudyData(config)
    found = inspect(
        data.root, features=data.features, crop=config.crop, cache=data.work.surveys, workers=config.workers
    )
    print(to_text(found))
    if not found.years:
        raise DataError(f"{data.root}: not one fire in it can be used; the reasons are listed above")

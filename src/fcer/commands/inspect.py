"""`fcer inspect`: what a dataset holds."""

from fcer.commands.synthesize import synthetic_data
from fcer.config.resolve import Resolved
from fcer.data.channels import feature_indices
from fcer.data.inspection import inspect, to_text
from fcer.errors import DataError

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Print the inspection; a dataset without a single usable fire is an error."""
    config = resolved.config
    features = feature_indices(config.features)
    data = config.data or synthetic_data(config)
    found = inspect(data, features=features, crop=config.crop, cache=config.work / "cache", workers=config.workers)
    print(to_text(found))
    if not found.years:
        raise DataError(f"{data}: not one fire in it can be used; the reasons are listed above")

"""A command's run in MLflow, with the study that logs to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fcer.commands import recorded_of
from fcer.config import Resolved, to_yaml
from fcer.tracking import TrackedRun, tracked_run

__all__ = ["command_run"]


@contextmanager
def command_run(name: str, resolved: Resolved, settings: Mapping[str, Any] | None = None) -> Iterator[TrackedRun]:
    """The run of the command `name`, which keeps the settings that it uses, or those given."""
    config = resolved.config
    kept = recorded_of(config, name) if settings is None else settings
    with tracked_run(name, settings=kept, config=to_yaml(resolved), work=config.work) as run:
        yield run

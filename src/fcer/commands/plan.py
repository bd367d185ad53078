"""`--dry-run` of any command: what is there, what would be made, where it would lie; nothing is done or logged."""

from dataclasses import replace

from fcer.commands import Command
from fcer.commands.launched import check_inputs
from fcer.config import Resolved

__all__ = ["tell_plan"]

_STUDIES = {
    "train": (False, False),
    "distill": (True, False),
    "search": (True, False),
    "evaluate": (True, True),
    "main": (True, True),
}
"""Commands that work on a study: whether students are made, and maps."""


def tell_plan(command: Command, resolved: Resolved) -> None:
    """Print what the command would do."""
    config = resolved.config
    if command.name == "main" and resolved.origins["year"] == "default":
        config = replace(config, year="all")
    check_inputs(command.name, config)
    print(f"fcer {command.name} would {command.does}")
    if command.name in _STUDIES and not config.predictions:
        from fcer.pipeline.plan import plan_study  # imports torch
        from fcer.pipeline.study_data import StudyData

        distils, predicts = _STUDIES[command.name]
        for line in plan_study(StudyData(config), distils=distils, predicts=predicts):
            print(f"  {line}")
    if command.name == "search":
        print(f"  trials: {config.trials} of the study {config.study}")
    if "out" in command.options or "work" in command.options:
        print(f"  results: {getattr(config, 'out', None) or config.work}")

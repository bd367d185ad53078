"""The text of `mlproject`, made from the commands: `python tests/helpers/project_file.py > mlproject`."""

import re

from fcer.commands import COMMANDS
from fcer.config.conversion import hints, item_type
from fcer.config.fields import option_of
from fcer.config.settings import Config
from fcer.config.subjects import first_of

HEAD = """\
# Entry points for `mlflow run . -e NAME`. Each runs this checkout's code, whatever is installed, as `fcer NAME`.
# Any option of the command is a parameter: `-P head_lr=0.01` arrives as `--head_lr 0.01`. Those that people use stand
# beside each entry point, with their types; `fcer NAME --help-all` lists all. They are not declared to MLflow: it would
# log each of them with an empty value, and a run tells what was set. What is not given is as in the YAML file of
# `-P config=experiments/NAME.yaml`, or the option's own default.
# Made by `python tests/helpers/project_file.py > mlproject`.
name: fcer
python_env: python_env.yaml

entry_points:
"""


def declared(name: str) -> list[str]:
    """The parameters of an entry point."""
    return ["config", *first_of(COMMANDS[name].options)]


def kind(key: str) -> str:
    """The type as MLflow calls it."""
    return "float" if key != "config" and hints(Config)[key] in (int, float) else "string"


def meaning(key: str) -> str:
    """What a parameter is, for the reader of the file."""
    if key == "config":
        return "experiments/NAME.yaml"
    several = "several: " if item_type(hints(Config)[key]) else ""
    choices = option_of(key).choices
    return several + (", ".join(choices) if choices else re.split("[;:,] ", option_of(key).meaning)[0])


def text() -> str:
    """The whole file."""
    lines = [HEAD.rstrip("\n")]
    for name, command in COMMANDS.items():
        if command.argument is not None or command.stays:
            continue
        lines += [f"  {name}:", f"    command: python src/fcer {name}"]
        lines += [f"    # -P {key}=  {kind(key)}: {meaning(key)}" for key in declared(name)]
        lines += [""]
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    print(text(), end="")

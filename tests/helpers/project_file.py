"""The text of `mlproject`, made from the commands: `python tests/helpers/project_file.py > mlproject`."""

import re
import textwrap

from fcer.commands import COMMANDS
from fcer.config.conversion import hints, item_type
from fcer.config.settings import Config, option_of
from fcer.config.subjects import first_of

HEAD = """\
# Entry points for `mlflow run . -e NAME`. Each runs this checkout's code, whatever is installed, as `fcer NAME`.
# Declared are the parameters that people use; any other option of the command is one, too: `-P head_lr=0.01` arrives
# as `--head_lr 0.01`, and `fcer NAME --help-all` lists them. An empty default means that nothing was given: then the
# YAML file of `-P config=experiments/NAME.yaml` decides, or the option's own default.
# Made by `python tests/helpers/project_file.py > mlproject`.
name: fcer
python_env: python_env.yaml

entry_points:
"""


def declared(name: str) -> list[str]:
    """The parameters of an entry point."""
    return ["config", *first_of(COMMANDS[name].options)]


def kind(key: str) -> str:
    """MLflow's type: `path` and `uri` are checked before we start, and would refuse an empty default."""
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
        flags = " ".join(f"--{key.replace('_', '-')}\0{{{key}}}" for key in declared(name))
        command_line = textwrap.wrap(flags, 110, break_on_hyphens=False)
        lines += [f"  {name}:", "    parameters:"]
        lines += [f'      {key}: {{type: {kind(key)}, default: ""}}  # {meaning(key)}' for key in declared(name)]
        lines += ["    command: >-", f"      python src/fcer {name} --mlproject"]
        lines += [f"      {part}".replace("\0", " ") for part in command_line]
        lines += [""]
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    print(text(), end="")

"""What may stand after `fcer`: a parser made from the table of commands and the settings' own words."""

import argparse
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import fcer
from fcer.commands import COMMANDS, Argument, Command
from fcer.config.conversion import hints, item_type, parts
from fcer.config.fields import fields, help_text, option_of
from fcer.config.settings import Config
from fcer.config.subjects import by_subject, first_of
from fcer.errors import ConfigError
from fcer.runtime import doors

__all__ = ["CONFIG", "EVERYWHERE", "make_parser"]

CONFIG = Command(
    "config",
    "show the resolved configuration and where each value came from",
    "fcer config show --config experiments/demo.yaml --seed 1",
    tuple(fields()),
    demo=True,
    argument=Argument("action", "show", ("show",)),
)
"""No command that works: the command line answers it by itself."""

EVERYWHERE = ("config", "help", "help-all", "quiet", "verbose", "dry-run", "debug")
"""Options of every command that are no settings."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error does."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see `{self.prog} --help`)")

    def format_help(self) -> str:
        """With what other packages bring, which is looked for only here: it takes as long as the rest."""
        for action in self._actions:
            brought = option_of(action.dest).brought if action.dest in fields() else ()
            if brought and action.help != argparse.SUPPRESS:
                action.help = f"{action.help}; of other packages: {', '.join(brought)}"
        if self.prog == "fcer":
            found = {group.removeprefix("fcer."): doors.names(group) for group in doors.GROUPS}
            lines = [f"{group} of other packages: {', '.join(names)}" for group, names in found.items() if names]
            self.epilog = "\n".join([self.epilog or "", *lines])
        return super().format_help()


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Options on lines of their own where they are long, examples as they were broken."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(120, shutil.get_terminal_size().columns - 2))
        self._action_max_length = 22  # one column of meanings, however short the options


def make_parser(everything: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands; `everything`: `--help` is to tell of all options, not just of those used most."""
    parser = _Parser(
        prog="fcer",
        description="Boundary-aware uncertainty for wildfire-spread models.",
        epilog="fcer COMMAND --help explains a command; without options, commands work on synthetic fires.\n"
        "fcer completion bash|zsh|fish prints what lets the shell complete commands and options.\n"
        "exit codes: 0 done, 1 failed, 2 bad usage or input, 3 an alarm of `verify`",
        formatter_class=_Layout,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fcer {fcer.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (*COMMANDS.values(), CONFIG):
        _add_command(commands, command, everything)
    return parser


def _add_command(commands: "argparse._SubParsersAction[_Parser]", command: Command, everything: bool) -> None:
    first = list(command.options) if everything else first_of(command.options)
    parser = commands.add_parser(
        command.name,
        help=command.does,
        usage=f"fcer {command.name} {f'{command.argument.name} ' if command.argument else ''}[OPTION ...]",
        description=command.does[0].upper() + command.does[1:] + ".",
        epilog=_epilog(command, len(command.options) - len(first)),
        formatter_class=_Layout,
        allow_abbrev=False,
        add_help=False,
    )
    if command.argument:
        name, meaning, choices = command.argument
        kind = str if choices else Path
        parser.add_argument("argument", metavar=name, type=kind, choices=choices or None, help=meaning)
    parser.add_argument("--config", metavar="FILE", help="experiments/NAME.yaml; flags override it")
    for subject, keys in by_subject(command.options).items():
        group = parser.add_argument_group(subject)
        for key in keys:
            _add_option(group, key, help_text(key, demo=command.demo) if key in first else argparse.SUPPRESS)
    _add_general(parser)


def _add_general(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("general")
    group.add_argument("-h", "--help", action="help", help="the options that are used most, and an example")
    group.add_argument("--help-all", action="help", help="all options")
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors, and what was asked for")
    group.add_argument("-v", "--verbose", action="store_true", help="say also what was set and how long it took")
    group.add_argument("--dry-run", action="store_true", help="say what is there and what would be done, and stop")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add_option(group: Any, key: str, text: str) -> None:
    flag, hint = "--" + key.replace("_", "-"), hints(Config)[key]
    text = text.replace("%", "%%") if text is not argparse.SUPPRESS else text
    if hint is bool:
        group.add_argument(flag, nargs="?", const="true", metavar="true|false", help=text)
        return
    item = item_type(hint)
    plain = {int: "N", str: "NAME", Path: "PATH"}.get(item or parts(hint)[0], "X")
    metavar = "|".join(option_of(key).choices) or plain
    group.add_argument(flag, nargs="+" if item else None, metavar=metavar, help=text)


def _epilog(command: Command, hidden: int) -> str:
    lines = ["example:", *_broken(command.example)]
    if command.demo:
        words = "Where neither data nor a configuration is named, it works on the demo: small synthetic fires."
        lines = [*textwrap.wrap(words, shutil.get_terminal_size().columns - 2), "", *lines]
    if hidden:
        lines = [f"{hidden} more options: fcer {command.name} --help-all", "", *lines]
    return "\n".join(lines)


def _broken(example: str) -> Sequence[str]:
    """A command over as many lines as the terminal needs, broken before options alone, so that it can be copied."""
    first, *options = example.replace(" --", "\n--").split("\n")
    width, lines = shutil.get_terminal_size().columns - 4, [f"  {first}"]
    for option in options:
        if len(lines[-1]) + 1 + len(option) <= width:
            lines[-1] += f" {option}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {option}")
    return lines

"""The reference of commands and settings, read off the parser that the command line itself uses."""

import argparse
from collections.abc import Iterable, Iterator

from fcer.commands import COMMANDS, Command
from fcer.commands.parser import CONFIG, make_parser
from fcer.config.fields import fields
from fcer.config.subjects import by_subject

__all__ = ["commands_page", "settings_page"]

_COMMANDS_INTRO = """# Commands

This page is made from the code that parses the command line. `fcer COMMAND` and `python -m fcer COMMAND` are the same.
Every option has a default; without `--data` and `--config`, commands work on synthetic fires. An option's value comes
from the [default](settings.md), from `--config experiments/NAME.yaml`, or from the flag, the last one given winning.
`fcer config show` prints each value and where it came from; `fcer COMMAND --help` has the options that are used most.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 an alarm of `verify`. Errors are one line on standard error,
without a traceback unless `--debug` is given.
"""

_SETTINGS_INTRO = """# Settings

Every setting once, by subject. The same name serves everywhere: `select_by` in a YAML file is `--select-by` on the
command line, `-P select_by=...` for `mlflow run`, and `fcer.configure(select_by=...)` in Python.
"""


def commands_page() -> str:
    """Every command with its options, in Markdown."""
    commands = (*COMMANDS.values(), CONFIG)
    parsers = _parsers()
    contents = [f"| [`fcer {one.name}`](#fcer-{one.name}) | {_cell(_sentence(one))} |" for one in commands]
    sections = [_section(one, parsers[one.name]) for one in commands]
    return "\n".join([_COMMANDS_INTRO, "| command | does |", "|---|---|", *contents, "", *sections])


def settings_page() -> str:
    """Every setting with its meaning, default, and the commands that take it."""
    meanings = {action.dest: action.help or "" for action in _parsers()[CONFIG.name]._actions}
    lines = [_SETTINGS_INTRO]
    for subject, keys in by_subject(tuple(fields())).items():
        lines += [f"## {subject[0].upper()}{subject[1:]}", "", "| setting | meaning | commands |", "|---|---|---|"]
        lines += [f"| `{key}` | {_cell(meanings[key])} | {_links(key)} |" for key in keys]
        lines.append("")
    return "\n".join(lines)


def _parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command by its name."""
    actions = make_parser(everything=True)._actions
    subparsers = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


def _section(command: Command, parser: argparse.ArgumentParser) -> str:
    lines = [f"## fcer {command.name}", "", _sentence(command), "", "```sh", command.example, "```", ""]
    if command.argument is None:
        lines += [f"Also an entry point of MLflow Projects: `mlflow run . -e {command.name}`.", ""]
    lines += ["| option | meaning |", "|---|---|"]
    for group in parser._action_groups:
        rows = list(_rows(group._group_actions))
        if rows and group.title not in ("options", "positional arguments"):
            lines.append(f"| **{group.title}** | |")
        lines += rows
    return "\n".join([*lines, ""])


def _rows(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if action.help is argparse.SUPPRESS:
            continue
        names = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar}`"
        value = f" `{_cell(str(action.metavar))}`" if action.option_strings and action.metavar else ""
        many = " …" if action.nargs == "+" else ""
        yield f"| {names}{value}{many} | {_cell(action.help or '')} |"


def _links(key: str) -> str:
    users = [name for name, command in COMMANDS.items() if key in command.options]
    return ", ".join(f"[{name}](commands.md#fcer-{name})" for name in users)


def _sentence(command: Command) -> str:
    return command.does[0].upper() + command.does[1:] + "."


def _cell(text: str) -> str:
    """Text that does not end a table's cell, nor stand for a tag."""
    return text.replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")

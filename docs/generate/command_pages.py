"""The reference of commands and settings, read off the parser that the command line itself uses."""

import argparse
from collections.abc import Iterator

from fcer.cli import _parser
from fcer.commands import COMMANDS
from fcer.config.settings import fields

__all__ = ["commands_page", "parsers", "settings_page"]

_COMMANDS_INTRO = """# Commands

This page is made from the code that parses the command line. `fcer COMMAND` and `python -m fcer COMMAND` are the same.
Every option has a default; without `--data` and `--config`, commands work on synthetic fires. An option's value comes
from the [default](settings.md), from `--config experiments/NAME.yaml`, or from the flag, the last one given winning.
`fcer config show` prints each value and where it came from.

Exit codes: 0 done, 1 failed, 2 bad usage or input. Errors are one line on standard error, without a traceback unless
`--debug` is given.
"""

_SETTINGS_INTRO = """# Settings

Every setting once, in the order of `fcer config show`. The same name serves everywhere: `select_by` in a YAML file is
`--select-by` on the command line, `-P select_by=...` for `mlflow run`, and `fcer.configure(select_by=...)` in Python.
"""


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command by its name."""
    actions = _parser()._actions
    subparsers = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


def commands_page() -> str:
    """Every command with its options, in Markdown."""
    known = parsers()
    contents = [f"| [`fcer {name}`](#fcer-{name}) | {_cell(_does(parser))} |" for name, parser in known.items()]
    sections = [_command(name, parser) for name, parser in known.items()]
    return "\n".join([_COMMANDS_INTRO, "| command | does |", "|---|---|", *contents, "", *sections])


def _does(parser: argparse.ArgumentParser) -> str:
    return parser.description or ""


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    example = (parser.epilog or "").removeprefix("example: ")
    entry = name in COMMANDS and COMMANDS[name].argument is None
    lines = [f"## fcer {name}", "", _does(parser), "", "```sh", example, "```", ""]
    if entry:
        lines += [f"Also an entry point of MLflow Projects: `mlflow run . -e {name}`.", ""]
    lines += ["| option | meaning |", "|---|---|", *_rows(parser)]
    return "\n".join([*lines, ""])


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        names = " ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar or action.dest}`"
        value = f" `{_cell(str(action.metavar))}`" if action.option_strings and action.metavar else ""
        many = " …" if action.nargs == "+" else ""
        yield f"| {names}{value}{many} | {_cell(action.help or '')} |"


def settings_page() -> str:
    """Every setting with its meaning, default, and the commands that take it."""
    known = parsers()
    show = {action.dest: action for action in known["config"]._actions}
    rows = []
    for key in fields():
        users = [name for name in known if name != "config" and key in {a.dest for a in known[name]._actions}]
        links = ", ".join(f"[{name}](commands.md#fcer-{name})" for name in users)
        rows.append(f"| `{key}` | {_cell(show[key].help or '')} | {links} |")
    return "\n".join([_SETTINGS_INTRO, "| setting | meaning | commands |", "|---|---|---|", *rows, ""])


def _cell(text: str) -> str:
    """Text that does not end a table's cell, nor stand for a tag."""
    return text.replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")

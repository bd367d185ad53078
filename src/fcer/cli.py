"""The command line: `fcer COMMAND` and `python -m fcer COMMAND`.

Only this module prints errors and decides exit codes: 0 done, 1 failed, 2 bad usage or input.
"""

import argparse
import signal
import sys
import traceback
import typing
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import fcer
from fcer.commands import COMMANDS, Command
from fcer.config.resolve import nearest, resolve, to_yaml
from fcer.config.settings import fields, help_text, kinds, option_of
from fcer.errors import ConfigError, FcerError, FcerWarning
from fcer.runtime.threads import wait_politely

__all__ = ["main"]

_STOPPED = "stopped; the same command goes on from what is complete"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    wait_politely()
    parser = _parser()
    _warn_in_one_line()
    given = [_hyphens(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    debug = "--debug" in given
    # A scheduler that ends a job sends this: it is as good as Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        options = vars(_parse(parser, given))
        name, argument, file = options.pop("command"), options.pop("argument", None), options.pop("config")
        options.pop("debug")
        flags = {key: value for key, value in options.items() if value is not None}
        resolved = resolve(file, flags, demo=name == "config" or COMMANDS[name].demo)
        if name == "config":
            print(to_yaml(resolved), end="")
        else:
            COMMANDS[name].run(resolved, argument)
    except FcerError as error:
        return _report(error, error.exit_code, debug)
    except SystemExit as printed:  # --help and --version have said what they had to say
        return int(printed.code or 0)
    except KeyboardInterrupt as error:
        return _report(error, 1, debug, _STOPPED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone: nobody is left to tell
        return 1
    except OSError as error:
        return _report(error, 1, debug)
    except Exception as error:
        if _met_on_the_way_out(error):
            return _report(error, 1, debug, _STOPPED)
        message = f"{type(error).__name__}: {error} (this should not happen: run with --debug and report it)"
        return _report(error, 1, debug, message)
    return 0


def _met_on_the_way_out(error: BaseException | None) -> bool:
    """Whether it is an interruption that led to the error, such as that of a half-started pool of processes."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _report(error: BaseException, code: int, debug: bool, message: str | None = None) -> int:
    if debug:
        traceback.print_exception(error)
    print("fcer:", " ".join((message or str(error)).split()), file=sys.stderr)
    return code


def _hyphens(word: str) -> str:
    """MLflow hands `-P fire_days=...` over as --fire_days: both spellings mean the same option."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value


def _parse(parser: argparse.ArgumentParser, given: list[str]) -> argparse.Namespace:
    """What was given, or a ConfigError that knows what was perhaps meant."""
    names = [*COMMANDS, "config"]
    if given and not given[0].startswith("-") and given[0] not in names:
        raise ConfigError(f"unknown command {given[0]}{nearest(given[0], names) or '; `fcer --help` lists them'}")
    options, unknown = parser.parse_known_args(given)
    if unknown:
        flags = ["--" + key.replace("_", "-") for key in vars(options)]
        hint = nearest(unknown[0], flags) or f"; `fcer {options.command} --help` lists its options"
        raise ConfigError(f"unknown option {unknown[0]}{hint}")
    return options


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error does."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see `{self.prog} --help`)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fcer",
        description="Boundary-aware uncertainty for wildfire-spread models.",
        epilog="fcer COMMAND --help explains a command; without options, commands work on synthetic fires.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fcer {fcer.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        _add_command(commands, command)
    show = commands.add_parser(
        "config",
        help="show the resolved configuration and where each value came from",
        description="Show the resolved configuration: every key, its value and where that came from.",
        epilog="example: fcer config show --config experiments/demo.yaml --seed 1",
        allow_abbrev=False,
    )
    show.add_argument("argument", metavar="action", choices=["show"], help="show")
    _add_options(show, tuple(fields()), demo=True)
    return parser


def _add_command(commands: "argparse._SubParsersAction[_Parser]", command: Command) -> None:
    parser = commands.add_parser(
        command.name,
        help=command.does,
        description=command.does[0].upper() + command.does[1:] + ".",
        epilog=f"example: {command.example}",
        allow_abbrev=False,
    )
    if command.argument:
        name, meaning, choices = command.argument
        kind = str if choices else Path
        parser.add_argument("argument", metavar=name, type=kind, choices=choices or None, help=meaning)
    _add_options(parser, command.options, command.demo)


def _add_options(parser: argparse.ArgumentParser, keys: Sequence[str], demo: bool) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="experiments/NAME.yaml; flags override it")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    for key in keys:
        flag = "--" + key.replace("_", "-")
        accepted = kinds(key)
        if bool in accepted:
            parser.add_argument(flag, nargs="?", const="true", metavar="true|false", help=help_text(key, demo=demo))
            continue
        many = next((typing.get_args(kind)[0] for kind in accepted if typing.get_origin(kind) is tuple), None)
        choices = option_of(key).choices
        metavar = "|".join(choices) or {int: "N", str: "NAME", Path: "PATH"}.get(many or accepted[0], "X")
        parser.add_argument(flag, nargs="+" if many else None, metavar=metavar, help=help_text(key, demo=demo))


def _warn_in_one_line() -> None:
    """Warnings that are meant for users look like errors do: one line each, none held back as a repetition."""

    def show(message: Warning | str, category: type[Warning], *_where: Any) -> None:
        text = message if issubclass(category, FcerWarning) else f"{category.__name__}: {message}"
        print("fcer: warning:", " ".join(str(text).split()), file=sys.stderr)

    warnings.showwarning = show  # type: ignore[assignment]
    warnings.simplefilter("always", FcerWarning)

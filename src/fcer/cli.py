"""The command line: `fcer COMMAND` and `python -m fcer COMMAND`.

Only this module prints errors and decides exit codes: 0 done, 1 failed, 2 bad usage or input, 3 an alarm of `verify`.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fcer.commands import COMMANDS, Command
from fcer.commands.parser import CONFIG, EVERYWHERE, make_parser
from fcer.config.checks import writable
from fcer.config.conversion import shown
from fcer.config.resolve import Resolved, nearest, resolve, to_yaml
from fcer.errors import ConfigError, FcerError, FcerWarning
from fcer.runtime.secrets import masked
from fcer.runtime.threads import wait_politely

__all__ = ["main", "parse", "resolved_of"]

_ANYWHERE = ("-q", "--quiet", "-v", "--verbose", "--debug")
"""Options that may stand before the command, too."""
_STOPPED = "stopped; the same command goes on from what is complete"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    wait_politely()
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    _warn_in_one_line(quiet="-q" in given or "--quiet" in given, where="-v" in given or "--verbose" in given)
    # A scheduler that ends a job sends this: it is as good as Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(parse(given))
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


def resolved_of(options: argparse.Namespace) -> tuple[Command, Resolved]:
    """The command that was asked for and its settings."""
    command = CONFIG if options.command == CONFIG.name else COMMANDS[options.command]
    typed = {key: getattr(options, key) for key in command.options}
    unset: tuple[Any, ...] = (None, "", [""]) if options.mlproject else (None,)
    flags = {key: value for key, value in typed.items() if value not in unset}
    file = None if options.config in unset else Path(options.config)
    return command, resolve(file, flags, demo=command.demo)


def _run(options: argparse.Namespace) -> None:
    command, resolved = resolved_of(options)
    argument = getattr(options, "argument", None)
    if isinstance(argument, Path) and (wrong := writable(argument)):
        raise ConfigError(f"{shown(str(argument))}: {wrong}")
    if command is CONFIG:
        print(to_yaml(resolved), end="")
        return
    with _told(command, resolved, quiet=options.quiet, verbose=options.verbose):
        command.run(resolved, argument)


@contextlib.contextmanager
def _told(command: Command, resolved: Resolved, *, quiet: bool, verbose: bool) -> Iterator[None]:
    """How much is said while a command runs."""
    begun = time.monotonic()
    if verbose:
        for key in command.options:
            if (origin := resolved.origins[key]) != "default":
                print(f"fcer: {masked(f'{key} = {getattr(resolved.config, key)}')} ({origin})", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        if quiet:
            os.environ["TQDM_DISABLE"] = "1"
            stack.callback(os.environ.pop, "TQDM_DISABLE")
        if quiet and not command.answers:
            nowhere = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        yield
    if verbose:
        print(f"fcer: {command.name} took {time.monotonic() - begun:.1f} s", file=sys.stderr)


def _met_on_the_way_out(error: BaseException | None) -> bool:
    """Whether it is an interruption that led to the error, such as that of a half-started pool of processes."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _report(error: BaseException, code: int, debug: bool, message: str | None = None) -> int:
    if debug:
        traceback.print_exception(error)
    print("fcer:", masked(" ".join((message or str(error)).split())), file=sys.stderr)
    return code


def _hyphens(word: str) -> str:
    """MLflow hands `-P fire_days=...` over as --fire_days: both spellings mean the same option."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value


def parse(given: Sequence[str]) -> argparse.Namespace:
    """What was given, or a ConfigError that knows what was perhaps meant."""
    given = [_hyphens(word) for word in given]
    names = [*COMMANDS, CONFIG.name]
    while given[1:] and given[0] in _ANYWHERE:
        given = [*given[1:], given[0]]
    if given and not given[0].startswith("-") and given[0] not in names:
        raise ConfigError(f"unknown command {given[0]}{nearest(given[0], names) or '; `fcer --help` lists them'}")
    options, unknown = make_parser("--help-all" in given).parse_known_args(given)
    if unknown:
        known = [key.replace("_", "-") for key in COMMANDS.get(options.command, CONFIG).options]
        near = nearest(unknown[0].lstrip("-"), [*known, *EVERYWHERE], prefix="--")
        lists = f"; `fcer {options.command} --help` lists its options"
        raise ConfigError(f"unknown option {unknown[0]}{near or lists}")
    return options


def _warn_in_one_line(quiet: bool, where: bool) -> None:
    """Warnings that are meant for users look like errors do: one line each, none held back as a repetition."""

    def show(message: Warning | str, category: type[Warning], file: str, line: int, *_: Any) -> None:
        text = message if issubclass(category, FcerWarning) else f"{category.__name__}: {message}"
        place = f" ({file}:{line})" if where else ""
        print("fcer: warning:", masked(" ".join(str(text).split())) + place, file=sys.stderr)

    warnings.showwarning = show  # type: ignore[assignment]
    warnings.simplefilter("ignore" if quiet else "always", FcerWarning)

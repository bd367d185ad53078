"""The command line: `fcer COMMAND` and `python -m fcer COMMAND`.

Only this module prints errors and decides exit codes: 0 done, 1 failed, 2 bad usage or input, 3 an alarm of `verify`.
"""

import argparse
import contextlib
import os
import re
import signal
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fcer.commands import COMMANDS, Command
from fcer.commands.launched import LAUNCHED
from fcer.commands.parser import CONFIG, EVERYWHERE, make_parser
from fcer.config.checks import writable
from fcer.config.conversion import shown
from fcer.config.resolve import Resolved, nearest, resolve, to_yaml
from fcer.errors import ConfigError, FcerError, FcerWarning
from fcer.runtime.secrets import masked
from fcer.runtime.terminal import one_line, safe_stdout
from fcer.runtime.threads import wait_politely

__all__ = ["main", "parse", "resolved_of"]

_ANYWHERE = ("-q", "--quiet", "-v", "--verbose", "--debug")
"""Options that may stand before the command, too."""
_ENOUGH = 100
"""Characters by which a warning is known again."""
_STOPPED = "stopped; the same command goes on from what is complete"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    wait_politely()
    safe_stdout()
    given = sys.argv[1:] if arguments is None else list(arguments)
    name = next((word for word in given if word in COMMANDS), "fcer")
    report = partial(_report, name=name, debug="--debug" in given)
    warned = _Warnings(verbose="-v" in given or "--verbose" in given)
    warned.take_over(quiet="-q" in given or "--quiet" in given)
    # A scheduler that ends a job sends this: it is as good as Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(parse(given))
    except FcerError as error:
        return report(error, error.exit_code)
    except SystemExit as printed:  # --help and --version have said what they had to say
        return int(printed.code or 0)
    except KeyboardInterrupt as error:
        return report(error, 1, _STOPPED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone: nobody is left to tell
        return 1
    except OSError as error:
        return report(error, 1)
    except Exception as error:
        if _met_on_the_way_out(error):
            return report(error, 1, _STOPPED)
        message = f"{type(error).__name__}: {error} (this should not happen: run with --debug and report it)"
        return report(error, 1, message)
    finally:
        warned.tell_rest()
    return 0


def resolved_of(options: argparse.Namespace) -> tuple[Command, Resolved]:
    """The command that was asked for and its settings."""
    command = CONFIG if options.command == CONFIG.name else COMMANDS[options.command]
    typed = {key: getattr(options, key) for key in command.options}
    flags = {key: value for key, value in typed.items() if value is not None}
    file = None if options.config is None else Path(options.config)
    return command, resolve(file, flags, demo=command.demo)


def _run(options: argparse.Namespace) -> None:
    command, resolved = resolved_of(options)
    argument = getattr(options, "argument", None)
    if isinstance(argument, Path) and (wrong := writable(argument)):
        raise ConfigError(f"{shown(str(argument))}: {wrong}")
    if command is CONFIG:
        print(to_yaml(resolved), end="")
        return
    if options.dry_run:
        from fcer.commands.plan import tell_plan  # seldom asked for

        tell_plan(command, resolved)
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


def _report(error: BaseException, code: int, message: str | None = None, *, name: str, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    sentence = one_line(masked(message or str(error)))
    print("fcer:", sentence, file=sys.stderr)
    if LAUNCHED in os.environ:  # nobody has taken the launcher's run over: it would fail without a reason
        from fcer.tracking import explain_launched  # imports mlflow

        explain_launched(name, sentence)
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


class _Warnings:
    """Warnings look like errors do: one line each, and once; of more that differ in names and numbers alone, how many.

    With `verbose` all are shown, with the place in the code.
    """

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._alike: dict[str, int] = {}

    def take_over(self, *, quiet: bool) -> None:
        """Show warnings from now on; those meant for users are left out if `quiet`."""
        warnings.showwarning = self._show  # type: ignore[assignment]
        warnings.simplefilter("ignore" if quiet else "always", FcerWarning)

    def _show(self, message: Warning | str, category: type[Warning], file: str, line: int, *_: Any) -> None:
        ours = issubclass(category, FcerWarning)
        text = one_line(masked(str(message) if ours else f"{category.__name__}: {message}"))
        kind = re.sub(r"\S*[/\d]\S*", "…", text)
        self._alike[kind] = self._alike.get(kind, 0) + 1
        if self._verbose:
            print(f"fcer: warning: {text} ({file}:{line})", file=sys.stderr)
        elif self._alike[kind] == 1:
            print(f"fcer: warning: {text}", file=sys.stderr)

    def tell_rest(self) -> None:
        """How often the same was to be said again."""
        for kind, count in self._alike.items():
            if count > 1 and not self._verbose:
                said = textwrap.shorten(kind.removeprefix("… "), _ENOUGH, placeholder=" …")
                print(f"fcer: warning: {count - 1} more like this (-v shows them): {said}", file=sys.stderr)

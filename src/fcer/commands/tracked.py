"""A command's run in MLflow: checked before it begins, named by what it is of, described, and linked to at the end."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fcer.commands import COMMANDS, recorded_of
from fcer.commands.launched import LAUNCHED, check_inputs
from fcer.config import Config, Resolved, to_yaml
from fcer.runtime.secrets import masked
from fcer.tracking import TrackedRun, link_to, tracked_run

if TYPE_CHECKING:
    from fcer.pipeline.study_data import StudyData  # imports torch, which maps from anywhere do without

__all__ = ["command_run", "span", "typed_again", "year_names"]


@contextmanager
def command_run(
    name: str,
    resolved: Resolved,
    settings: Mapping[str, Any] | None = None,
    *,
    of: str = "",
    shown: Config | None = None,
    attach: str | None = None,
    charts: bool = False,
) -> Iterator[TrackedRun]:
    """The run of a command, which prints the address of its page when all is done.

    Parameters
    ----------
    settings:
        What it keeps as parameters; by default what the command uses.
    of:
        What it is of, the rest of its name: a year, a folder.
    shown:
        The configuration to keep, where that must not be the given one.
    attach:
        The id of an earlier run that goes on.
    charts:
        Whether what matters are the runs below it, compared.
    """
    config = resolved.config
    launched = LAUNCHED in os.environ
    if not launched:  # a typo leaves no run behind, unless `mlflow run` has begun it: then it tells why it failed
        check_inputs(name, config)
    command = COMMANDS[name]
    with tracked_run(
        f"{name} {of}".strip(),
        settings=recorded_of(config, name) if settings is None else settings,
        config=to_yaml(Resolved(shown or config, resolved.origins)),
        work=config.work,
        attach=attach,
        about=f"`fcer {name}`: {command.does}. Again:\n\n```sh\n{typed_again(name, resolved)}\n```",
    ) as run:
        if launched:
            check_inputs(name, config)
        yield run
    print(f"MLflow: {link_to(run.id, below=charts)}")


def typed_again(name: str, resolved: Resolved) -> str:
    """The command line that does the same."""
    files = {origin for origin in resolved.origins.values() if origin.endswith((".yaml", ".yml"))}
    lines = [["fcer", name], *(["--config", file] for file in sorted(files))]
    for key, origin in resolved.origins.items():
        if origin.startswith("--"):
            value = getattr(resolved.config, key)
            items: Sequence[Any] = value if isinstance(value, tuple) else (value,)
            lines.append([origin, *(str(item).lower() if isinstance(item, bool) else str(item) for item in items)])
    # A line for each option: the page would be as wide as the longest
    return masked(" \\\n  ".join(shlex.join(line) for line in lines))


def year_names(data: "StudyData") -> str:
    """The test years of a study as part of a name; without one it is for operations."""
    return "operations" if data.holds_nothing_out else span(data.test_years)


def span(years: Sequence[int]) -> str:
    """Years as part of a name.

    >>> span([2018, 2019, 2020]), span([2021]), span([2018, 2021])
    ('2018-2020', '2021', '2018 2021')
    """
    if len(years) > 1 and list(years) == list(range(years[0], years[-1] + 1)):
        return f"{years[0]}-{years[-1]}"
    return " ".join(map(str, years))

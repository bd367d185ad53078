"""Forms of dataset that are not WildfireSpreadTS': `@reader("name")`, or another package's entry point.

[project.entry-points."fcer.datasets"]
my_form = "my_package:MyReader"
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fcer.data.fire import Fire
from fcer.errors import DataError, warn
from fcer.runtime import doors
from fcer.runtime.doors import Door, made_as

__all__ = ["Reader", "read_by_others", "reader", "reader_of"]


@runtime_checkable
class Reader(Protocol):
    """What opens a form of dataset."""

    def recognises(self, path: Path) -> bool:
        """Whether a folder or file, which may not be there at all, is of this form: ours is left aside then."""
        ...

    def fires(self, path: Path) -> Iterable[Fire | DataError]:
        """Every fire in it, opened; for a broken one the sentence that says why it cannot be used."""
        ...


def _accepted(_: str, kind: Any) -> Reader:
    return made_as(Reader, kind, "it lacks recognises or fires of fcer.data.readers.Reader")


reader: Door[Reader] = Door(doors.DATASETS, _accepted)
"""`@reader("name")` registers a class."""


def read_by_others(path: Path) -> tuple[list[Fire], list[str]] | None:
    """Fires in the order of year and name, and a sentence for each broken one; None where nobody knows the form."""
    known = reader_of(path)
    if known is None:
        return None
    found = list(known.fires(path))
    fires = sorted((fire for fire in found if isinstance(fire, Fire)), key=lambda fire: (fire.year, fire.name))
    return fires, [str(problem) for problem in found if not isinstance(problem, Fire)]


def reader_of(path: Path) -> Reader | None:
    """The first of other people's readers that recognises a folder or file."""
    for name, one in reader.installed.items():
        try:
            if one.recognises(path):
                return one
        except Exception as error:  # whatever somebody else's code raises
            warn(f"datasets: {name} is left out: {error}")
    return None

"""What a study tells of itself while it runs; `tracking` writes it to MLflow, the null log to nowhere."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fcer.evaluation.results import Results  # whoever logs a forecast needs no evaluation

__all__ = ["NO_LOG", "NullLog", "RunLog", "RunOnDemand"]


class RunLog(Protocol):
    """A run to log to."""

    @property
    def id(self) -> str:
        """By which other runs can name this one."""

    def params(self, values: Mapping[str, Any]) -> None:
        """Settings, and what was decided."""

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Some numbers of one step."""

    def curves(self, rows: Iterable[tuple[str, float, int]]) -> None:
        """Any numbers: name, value, step."""

    def tags(self, values: Mapping[str, str]) -> None:
        """Short texts to find the run by."""

    def link(self, runs: Mapping[str, str]) -> None:
        """Ids of runs that this one was built from, by what they gave."""

    def link_tagged(self, runs: Mapping[str, tuple[str, str]]) -> None:
        """The same for runs of earlier commands, each by a tag and its value."""

    def file(self, path: Path, folder: str | None = None) -> None:
        """Keep a file with the run."""

    def text(self, text: str, name: str) -> None:
        """Keep a text with the run."""

    def dataset(self, root: Path, fingerprint: str, context: str, profile: Mapping[str, int] | None = None) -> None:
        """Which data was used: where it lay, what it held, what for, and in numbers how much."""

    def model(self, folder: Path, *, metrics: Mapping[str, float]) -> None:
        """The student in `folder`, with the metrics that speak for it."""

    def note(self, markdown: str) -> None:
        """What the run did, in Markdown, on top of its page; beside what was noted before."""

    def results(
        self, results: "Results", folder: Path, *, passes: Mapping[str, int], colours: Mapping[str, str]
    ) -> None:
        """An evaluation, whose files lie in `folder`: tables, tests, and a run for each method and year."""

    def child(
        self, name: str, settings: Mapping[str, Any], *, reopen: bool = False
    ) -> AbstractContextManager["RunLog"]:
        """A run below this one, which ends with the block; with `reopen`, one that a kill left there goes on."""

    def knows(self, tag: str, value: str) -> bool:
        """Whether some finished run carries this tag."""

    def known_below(self, tag: str) -> set[str]:
        """The values that finished runs below this one have under a tag."""


class NullLog:
    """Logs nothing: a study in a notebook or a test needs no server."""

    id = ""

    def params(self, values: Mapping[str, Any]) -> None:
        """See `RunLog`."""

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """See `RunLog`."""

    def curves(self, rows: Iterable[tuple[str, float, int]]) -> None:
        """See `RunLog`."""

    def tags(self, values: Mapping[str, str]) -> None:
        """See `RunLog`."""

    def link(self, runs: Mapping[str, str]) -> None:
        """See `RunLog`."""

    def link_tagged(self, runs: Mapping[str, tuple[str, str]]) -> None:
        """See `RunLog`."""

    def file(self, path: Path, folder: str | None = None) -> None:
        """See `RunLog`."""

    def text(self, text: str, name: str) -> None:
        """See `RunLog`."""

    def dataset(self, root: Path, fingerprint: str, context: str, profile: Mapping[str, int] | None = None) -> None:
        """See `RunLog`."""

    def model(self, folder: Path, *, metrics: Mapping[str, float]) -> None:
        """See `RunLog`."""

    def note(self, markdown: str) -> None:
        """See `RunLog`."""

    def results(
        self, results: "Results", folder: Path, *, passes: Mapping[str, int], colours: Mapping[str, str]
    ) -> None:
        """See `RunLog`."""

    @contextmanager
    def child(
        self,
        name: str,  # noqa: ARG002
        settings: Mapping[str, Any],  # noqa: ARG002
        *,
        reopen: bool = False,  # noqa: ARG002
    ) -> Iterator["NullLog"]:
        """See `RunLog`."""
        yield self

    def knows(self, tag: str, value: str) -> bool:  # noqa: ARG002
        """Nothing is known, and nothing logged twice matters."""
        return False

    def known_below(self, tag: str) -> set[str]:  # noqa: ARG002
        """Nothing is known."""
        return set()


NO_LOG: RunLog = NullLog()


class RunOnDemand:
    """A run below another that begins when there is something to log: what was there before needs none."""

    def __init__(self, stack: ExitStack, parent: RunLog, name: str, settings: Mapping[str, Any]) -> None:
        self._stack, self._parent, self._name, self._settings = stack, parent, name, settings
        self.begun: RunLog | None = None

    @property
    def log(self) -> RunLog:
        """The run, begun now if it was not."""
        if self.begun is None:
            self.begun = self._stack.enter_context(self._parent.child(self._name, self._settings))
        return self.begun

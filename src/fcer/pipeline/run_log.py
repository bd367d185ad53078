"""What a study tells of itself while it runs; `tracking` writes it to MLflow, `NO_LOG` to nowhere."""

# ruff: noqa: ARG002 (what is logged to nowhere is not looked at)
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from fcer.evaluation.results import Results  # whoever logs a forecast needs no evaluation

__all__ = ["NO_LOG", "RunLog", "RunOnDemand"]


class RunLog:
    """A run to log to; as it stands here it logs nothing: a study in a notebook or a test needs no server."""

    @property
    def id(self) -> str:
        """By which other runs can name this one."""
        return ""

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

    def tables(self, tables: Mapping[str, "pd.DataFrame"]) -> None:
        """Keep tables with the run, by name, where they can be looked at and compared."""

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
        return nullcontext(self)

    def knows(self, tag: str, value: str) -> bool:
        """Whether some finished run carries this tag."""
        return False

    def known_below(self, tag: str) -> set[str]:
        """The values that finished runs below this one have under a tag."""
        return set()


NO_LOG = RunLog()


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

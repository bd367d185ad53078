"""A journal under kills at any moment: what was written is sent exactly once, in order, and nothing is made up."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fcer.tracking.journal import FILE, Journal, is_complete, read_journal

pytestmark = pytest.mark.filterwarnings("ignore:.*the last line was cut short:fcer.errors.FcerWarning")


class JournalMachine(RuleBasedStateMachine):
    """One process writes, is killed at any byte, and the next goes on; `server` is what MLflow was sent."""

    def __init__(self) -> None:
        super().__init__()
        self._place = TemporaryDirectory()
        self.written: list[int] = []
        """Entries that `add` has returned for, in order."""
        self.server: list[int] = []
        self.marked = 0
        """How many of them the journal knows to be sent."""
        self.open: list[str] = []

    def teardown(self) -> None:
        self._place.cleanup()

    @initialize()
    def begin(self) -> None:
        self.journal = Journal.create(Path(self._place.name), "train", "sqlite:///a.db")
        self.start()

    @rule()
    def start(self) -> None:
        entry = self.journal.add(None, "start", {"name": f"run {len(self.written)}"})
        self.written.append(entry.n)
        self.open.append(entry.run)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), value=st.sampled_from([0.5, -1e300, 3.0]), name=st.sampled_from(["a", "}", "\n", "é"]))
    def log(self, data: st.DataObject, value: float, name: str) -> None:
        run = data.draw(st.sampled_from(self.open))
        self.written.append(self.journal.add(run, "metrics", {"rows": [[name, value, 0]]}).n)

    @precondition(lambda self: self.open)
    @rule()
    def end(self) -> None:
        self.written.append(self.journal.add(self.open.pop(), "end", {"status": "FINISHED"}).n)

    @precondition(lambda self: self.journal.pending)
    @rule(answered=st.booleans())
    def send(self, answered: bool) -> None:
        """The server gets the oldest entry; a kill may come before that is marked."""
        entry = self.journal.pending[min(self.journal.pending)]
        if entry.n not in self.server:  # it knows what it has: entries carry their number
            self.server.append(entry.n)
        if answered:
            self.journal.mark_sent(entry, f"id-{entry.run}" if entry.op == "start" else None)
            self.marked += 1
        else:
            self._killed(0)

    @rule(lost=st.integers(0, 60))
    def kill(self, lost: int) -> None:
        """While a further line was being written: some of it is there, all before it is."""
        self._killed(lost)

    def _killed(self, bytes_of_next: int) -> None:
        path = self.journal.folder / FILE
        if bytes_of_next:
            with path.open("ab") as file:
                file.write(
                    b'{"n": 999, "run": "1", "op": "metrics", "at": 1, "data": {"rows": []}} 00000000'[:bytes_of_next]
                )
        self.journal = read_journal(self.journal.folder)
        self.journal.claim()

    @invariant()
    def nothing_is_lost_or_made_up(self) -> None:
        if not hasattr(self, "journal"):
            return
        read = read_journal(self.journal.folder)
        assert list(read.entries) == self.written == list(range(1, len(self.written) + 1))
        assert list(read.pending) == list(self.journal.pending) == self.written[self.marked :]
        assert list(read.open_runs) == self.open
        assert self.server == self.written[: len(self.server)] and len(self.server) - self.marked in (0, 1)
        assert not is_complete(self.journal.folder)


JournalMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
test_a_journal_survives_every_kill = JournalMachine.TestCase

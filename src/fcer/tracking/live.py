"""The log of a command that is at work: on disk first, then to MLflow; without MLflow it goes on all the same."""

import threading
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fcer.errors import FcerError, FcerWarning
from fcer.tracking.journal import Entry, Journal
from fcer.tracking.sender import RefusedError, Sender, UnreachableError

__all__ = ["Delivery", "LiveLog", "count", "deliver"]


class Delivery(NamedTuple):
    """What came of sending all that was pending."""

    sent: Counter[str]
    """How many entries, by the name of their run."""
    refused: list[str]
    """One sentence for each entry that could not be logged."""


def deliver(journal: Journal, sender: Sender) -> Delivery:
    """Send all that is pending, in its order; an entry that is refused stays pending and holds up no other."""
    delivery = Delivery(Counter(), [])
    for entry in list(journal.pending.values()):
        name = journal.names[entry.run]
        try:
            sender.send(entry, again=True)
            delivery.sent[name] += 1
        except RefusedError as error:
            delivery.refused.append(f"{entry.op} of {name}: {error}")
    return delivery


def count(entries: int) -> str:
    """How many entries, in words."""
    return "1 entry" if entries == 1 else f"{entries} entries"


class LiveLog:
    """The runs of one command, which share a journal. Threads may log side by side."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._sender = Sender(journal)
        self._lock = threading.Lock()
        self._lost = False
        self._warned: set[type[Exception]] = set()

    def add(self, run: str | None, op: str, data: Mapping[str, Any]) -> Entry:
        """Write an entry down, then send it; without a run it is the start of a new one."""
        with self._lock:
            entry = self.journal.add(run, op, data)
            if not self._lost:
                self._try(entry)
            return entry

    def must_start(self, data: Mapping[str, Any]) -> Entry:
        """The start of the command's own run, which has to succeed: so far nothing is computed."""
        entry = self.journal.add(None, "start", data)
        self._sender.send(entry)
        return entry

    def close(self, *, strict: bool) -> None:
        """Try once more to send what is pending; what then is left is an error, or a warning if not `strict`."""
        with self._lock:
            refused: list[str] = []
            try:
                refused = deliver(self.journal, self._sender).refused
                reason = refused[0] if refused else ""
            except UnreachableError as error:
                reason = str(error)
            self.journal.release()
        if not reason:
            return
        left = len(refused) or len(self.journal.pending)
        remedy = "see to it, then" if refused else "when the server is back:"
        sentence = (
            f"MLflow at {self.journal.uri} lacks {count(left)} of this run ({reason}); "
            f"{remedy} fcer log {self.journal.folder}"
        )
        if strict:
            raise FcerError(f"the results are complete on disk, but {sentence}")
        warnings.warn(sentence, FcerWarning, stacklevel=2)

    def _try(self, entry: Entry) -> None:
        try:
            self._sender.send(entry)
        except UnreachableError as error:
            self._lost = True
            self._warn("does not answer", error)
        except RefusedError as error:
            self._warn(f"refuses {entry.op} of {self.journal.names[entry.run]}", error)

    def _warn(self, what: str, error: Exception) -> None:
        """Say it once for each kind of trouble; the end of the run tells the whole."""
        if type(error) not in self._warned:
            self._warned.add(type(error))
            kept = f"going on, everything is kept in {self.journal.folder}"
            warnings.warn(f"MLflow at {self.journal.uri} {what} ({error}); {kept}", FcerWarning, stacklevel=2)

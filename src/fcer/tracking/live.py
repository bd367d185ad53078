"""The log of a command that is at work: written to disk at once, sent to MLflow by a thread.

Computing never waits for MLflow: without a server, or with one that does not answer, it goes on all the same.
"""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from fcer.errors import FcerError, warn
from fcer.tracking.journal import Entry, Journal
from fcer.tracking.sender import RefusedError, Sender, UnreachableError

__all__ = ["Delivery", "LiveLog", "count", "deliver"]

_SECONDS_TO_RETRY = 30.0
"""How long a server that did not answer is left alone."""


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
        self._unsent: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._lost: UnreachableError | None = None
        """Why the server could not be reached when it was last tried."""
        self._closing = False
        self._warned: set[type[Exception]] = set()
        # A daemon: a second Ctrl-C ends the command though the server hangs, and the journal has everything
        self._thread = threading.Thread(target=self._drain, daemon=True, name="send to MLflow")

    def must_start(self, data: Mapping[str, Any]) -> Entry:
        """The start of the command's own run, which has to succeed: so far nothing is computed."""
        entry = self.journal.add(None, "start", data)
        self._sender.send(entry)
        self._thread.start()
        return entry

    def add(self, run: str | None, op: str, data: Mapping[str, Any]) -> Entry:
        """Write an entry down, to be sent soon; without a run it is the start of a new one."""
        with self._changed:
            entry = self.journal.add(run, op, data)
            self._unsent.append(entry)
            self._changed.notify()
            return entry

    @property
    def is_lost(self) -> bool:
        """Whether the server did not answer when it was last tried."""
        return self._lost is not None

    def close(self, *, strict: bool) -> None:
        """Wait until all is sent, or the server fails; what then is left is an error, or a warning if not `strict`."""
        lost_before = self._lost
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        refused: list[str] = []
        reason = ""
        try:
            if self._lost and self._lost is not lost_before:
                raise self._lost  # it was tried just now
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
        warn(sentence)

    def _drain(self) -> None:
        """Send what is written, in its order, until the log is closed; what is refused is left for the end."""
        while entry := self._next():
            try:
                self._sender.send(entry, again=self.is_lost)
                self._lost = None
            except UnreachableError as error:
                self._unsent.appendleft(entry)
                self._lost = error
                self._warn("does not answer", error)
            except RefusedError as error:
                self._lost = None
                self._warn(f"refuses {entry.op} of {self.journal.names[entry.run]}", error)
            except OSError:
                return  # the journal's disk is full: whoever computes meets the same, and can say so

    def _next(self) -> Entry | None:
        """Wait for the next entry to send; none when the log is closed and nothing more can be sent."""
        with self._changed:
            if self.is_lost:
                self._changed.wait_for(lambda: self._closing, _SECONDS_TO_RETRY)
            else:
                self._changed.wait_for(lambda: self._closing or self._unsent)
            return None if self._closing and (self.is_lost or not self._unsent) else self._unsent.popleft()

    def _warn(self, what: str, error: Exception) -> None:
        """Say it once for each kind of trouble; the end of the run tells the whole."""
        if type(error) not in self._warned:
            self._warned.add(type(error))
            kept = f"going on, everything is kept in {self.journal.folder}"
            warn(f"MLflow at {self.journal.uri} {what} ({error}); {kept}")

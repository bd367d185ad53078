"""The journal of a command: every thing it logs, on disk before it is sent, and a mark once MLflow has it.

`journal.jsonl` only ever grows. A line of it is one of: a process that writes from here on, an entry (what to log,
for which run), a mark that an entry was sent, a mark that a run has to be sent anew, and last, that all is done.
Each line ends with a checksum of itself.
"""

import json
import os
import re
import secrets
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fcer.config.bounded import parse_json
from fcer.errors import InputError, warn
from fcer.runtime.processes import Process, this_process

__all__ = ["FILE", "Entry", "Journal", "from_line", "is_complete", "read_journal", "to_line"]

FILE = "journal.jsonl"
_COMPLETE = {"complete": True}
_OPERATIONS = {"start", "params", "metrics", "tags", "origins", "note", "text", "file", "dataset", "model", "end"}
_SILENT_ELSEWHERE = 24 * 3600.0
"""Seconds without a line after which a process of another machine counts as dead: it cannot be asked."""


class Entry(NamedTuple):
    """One thing to log."""

    n: int
    """Counted from 1 in its journal."""
    run: str
    """Which run of the journal: the number that its start had."""
    op: str
    """start, params, metrics, tags, origins, note, text, file, dataset, model or end."""
    at: int
    """When it happened, in milliseconds since 1970."""
    data: dict[str, Any]


class Journal:
    """A journal to write to. What it holds in memory is what MLflow does not have yet.

    One thread may add entries while another marks them as sent.
    """

    def __init__(self, folder: Path, uri: str) -> None:
        self.folder = folder
        self.uri = uri
        self.process: Process | None = None
        """Who writes it; none where nobody does any more."""
        self.entries: dict[int, Entry] = {}
        """All of them, where the journal was read from disk."""
        self.pending: dict[int, Entry] = {}
        self.run_ids: dict[str, str] = {}
        """MLflow's ids of the runs that it knows."""
        self.open_runs: dict[str, str] = {}
        """Names of the runs that have begun and not ended."""
        self.names: dict[str, str] = {}
        self._last = 0
        self._lock = threading.Lock()
        self._whole: int | None = None
        """How many bytes are whole lines, where a kill cut the last one short."""

    @classmethod
    def create(cls, runs: Path, command: str, uri: str) -> "Journal":
        """A new one in a folder of its own below `runs`; `uri` says without secrets which server it is for."""
        word = re.sub(r"[^\w.-]+", "_", command)
        folder = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{word}-{secrets.token_hex(2)}"
        folder.mkdir(parents=True)
        journal = cls(folder.resolve(), uri)
        journal.claim()
        return journal

    @property
    def alive(self) -> bool:
        """Whether a process may still write to it."""
        last_line = (self.folder / FILE).stat().st_mtime
        return self.process is not None and self.process.may_live(last_line, _SILENT_ELSEWHERE)

    def claim(self) -> None:
        """Write from here on as this process. A last line that a kill cut short is removed."""
        path = self.folder / FILE
        if self._whole is not None:
            os.truncate(path, self._whole)
            self._whole = None
            warn(f"{path}: the last line was cut short when the command was killed; it is left out")
        self.process = this_process()
        self._write({"process": self.process, "uri": self.uri})

    def add(self, run: str | None, op: str, data: Mapping[str, Any], at: int | None = None) -> Entry:
        """Write an entry; without a run it is the start of a new one."""
        with self._lock:
            n = self._last + 1
            entry = Entry(n, run or str(n), op, at or int(time.time() * 1000), dict(data))
            self._write(entry._asdict())
            self._take(entry)
            return entry

    def mark_sent(self, entry: Entry, run_id: str | None = None) -> None:
        """Note that MLflow has an entry; for a start, `run_id` is the run that it became."""
        with self._lock:
            self._write({"sent": entry.n} | ({"run_id": run_id} if run_id else {}))
            if run_id:
                self.run_ids[entry.run] = run_id
            del self.pending[entry.n]

    def send_anew(self, run: str) -> None:
        """Note that the server of now has never heard of a run: all of it is pending again."""
        self._write({"anew": run})
        self._forget(run)

    def release(self) -> None:
        """Write no more: nothing is left to do, or somebody else may go on."""
        self.process = None
        done = not self.pending and not self.open_runs
        self._write(_COMPLETE if done else {"process": None, "uri": self.uri})

    def reference(self, run: str) -> str:
        """A name for a run that holds before it has an id and on any server."""
        return f"{self.folder.name}/{run}"

    def run_id(self, name: str) -> str:
        """The id of a run that was named by its `reference`; anything else as it is."""
        folder, _, run = name.rpartition("/")
        return self.run_ids.get(run, name) if folder == self.folder.name else name

    def portable(self, run_id: str) -> str:
        """The `reference` of the run with this id if it is one of the journal's; any other id as it is."""
        with self._lock:
            return next((self.reference(run) for run, known in self.run_ids.items() if known == run_id), run_id)

    def _write(self, content: Mapping[str, Any]) -> None:
        # Opened for each line: a few microseconds, and no handle that forked workers would share
        with (self.folder / FILE).open("a", encoding="utf-8") as file:
            file.write(to_line(content))

    def _take(self, entry: Entry) -> None:
        self._last = entry.n
        self.pending[entry.n] = entry
        if entry.op == "start":
            self.names[entry.run] = self.open_runs[entry.run] = entry.data["name"]
        elif entry.op == "end":
            self.open_runs.pop(entry.run, None)

    def _forget(self, run: str) -> None:
        self.run_ids.pop(run, None)
        again = {n: entry for n, entry in self.entries.items() if entry.run == run}
        self.pending = dict(sorted((self.pending | again).items()))

    def _read(self, content: dict[str, Any]) -> None:
        if "process" in content:
            self.process = content["process"] and Process(*content["process"])
            self.uri = content["uri"]
        elif "sent" in content:
            entry = self.entries[content["sent"]]
            self.pending.pop(entry.n, None)
            if "run_id" in content:
                self.run_ids[entry.run] = content["run_id"]
        elif "anew" in content:
            self._forget(self._known(content["anew"]))
        elif "complete" in content:
            self.process = None
        else:
            entry = Entry(**content)
            if entry.n != self._last + 1 or entry.op not in _OPERATIONS or not isinstance(entry.data, dict):
                raise ValueError(f"entry {entry.n}, {entry.op}, after entry {self._last}")
            if entry.op != "start":
                self._known(entry.run)
            self.entries[entry.n] = entry
            self._take(entry)

    def _known(self, run: str) -> str:
        if run not in self.names:
            raise ValueError(f"run {run} has not begun")
        return run


def read_journal(folder: Path) -> Journal:
    """The journal in `folder`, as far as its lines are whole."""
    journal = Journal(folder.resolve(), "")
    path = folder / FILE
    content = path.read_bytes()
    *lines, torn = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            journal._read(from_line(line.decode()))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(
                f"{path}, line {number}: cannot be read ({error!r}); remove the line, and what it held is not logged"
            ) from error
    journal._whole = len(content) - len(torn) if torn else None
    return journal


def to_line(content: Mapping[str, Any]) -> str:
    """One line of a journal."""
    line = json.dumps(content)
    return f"{line} {zlib.crc32(line.encode()):08x}\n"


def from_line(line: str) -> dict[str, Any]:
    """What `to_line` wrote, and what versions before the checksum did; ValueError where it was damaged since."""
    body, end, checksum = line.rpartition("}")
    if checksum.strip() and checksum.strip() != f"{zlib.crc32((body + end).encode()):08x}":
        raise ValueError("its checksum does not fit")
    content = parse_json(body + end)
    if not isinstance(content, dict):
        raise ValueError("it is no object")
    return content


def is_complete(folder: Path) -> bool:
    """Whether the journal in `folder` says that nothing is left to do; only its end is read."""
    line = to_line(_COMPLETE).encode()
    with (folder / FILE).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - len(line)))
        return file.read() == line

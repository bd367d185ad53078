"""Journals of commands that are over: what was not sent is sent later, and what was killed is ended."""

import shutil
import time
from collections import Counter
from pathlib import Path

from filelock import FileLock

from fcer.errors import FcerError, InputError, warn
from fcer.tracking.journal import FILE, Journal, is_complete, read_journal
from fcer.tracking.live import Delivery, count, deliver
from fcer.tracking.sender import Sender, UnreachableError
from fcer.tracking.server import prepare_client, tracking_uri

__all__ = ["end_killed_runs", "find_journals", "log_later"]

_LOCK = ".lock"
"""The file, among the journals, that whoever sends those of others locks."""
_KEPT = 30 * 24 * 3600.0
"""Seconds for which a journal is kept that nothing is left of to do."""


def find_journals(folder: Path) -> list[Path]:
    """The folders of journals: `folder` itself, or those in it, the oldest first."""
    if (folder / FILE).is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{FILE}"))
    if not found:
        raise InputError(f"{folder}: holds no {FILE}; name a folder in WORK/runs, or WORK/runs itself for all of them")
    return found


def log_later(folder: Path) -> Delivery | None:
    """Send what MLflow does not have yet of a journal: to the runs that the server knows, else to new ones.

    Runs that a kill left open are ended. None: a live process still writes the journal, and it is left alone.
    """
    prepare_client()
    # One process at a time: two would send the same to two runs
    with FileLock(folder.resolve().parent / _LOCK):
        return _send_rest(folder)


def _send_rest(folder: Path) -> Delivery | None:
    journal = read_journal(folder)
    if journal.alive:
        return None
    if not journal.pending and not journal.open_runs:
        return Delivery(Counter(), [])
    before, journal.uri = journal.uri, tracking_uri()
    _take_over(journal)
    sender = Sender(journal)
    try:
        _send_unknown_runs_anew(journal, sender, before)
        return deliver(journal, sender)
    except UnreachableError as error:
        raise FcerError(
            f"MLflow at {journal.uri} does not answer ({error}), with {count(len(journal.pending))} left; "
            f"start the server or set MLFLOW_TRACKING_URI, then again: fcer log {folder}"
        ) from error
    finally:
        journal.release()


def end_killed_runs(runs: Path) -> None:
    """Send what killed processes left unsent, and end what they left running; remove journals that are done and old."""
    runs.mkdir(parents=True, exist_ok=True)
    with FileLock(runs / _LOCK):
        for folder in sorted(path.parent for path in runs.glob(f"*/{FILE}")):
            try:
                if is_complete(folder):
                    _remove_old(folder)
                else:
                    _end_killed(folder)
            except (OSError, InputError) as error:
                warn(f"what {folder} left running is not looked after ({error})")


def _end_killed(folder: Path) -> None:
    journal = read_journal(folder)
    # What another server was told, that one alone can be told more of
    if journal.process is None or journal.alive or journal.uri != tracking_uri():
        return
    names = ", ".join(journal.open_runs.values()) or "nothing"
    _take_over(journal)
    trouble = ""
    try:
        refused = deliver(journal, Sender(journal)).refused
        trouble = f", but MLflow refuses {refused[0]}" if refused else ""
    except UnreachableError as error:
        trouble = f", but MLflow was not told ({error})"
    journal.release()
    left = f"; {count(len(journal.pending))} left: fcer log {folder}" if journal.pending else ""
    warn(f"{folder.name} was killed with {names} open: what no other command goes on with is KILLED{trouble}{left}")


def _take_over(journal: Journal) -> None:
    """Write on in a dead process's journal, and end the runs that it left open when it was last heard of."""
    last_heard = int((journal.folder / FILE).stat().st_mtime * 1000)
    journal.claim()
    for run in reversed(list(journal.open_runs)):
        journal.add(run, "end", {"status": "KILLED"}, last_heard)


def _send_unknown_runs_anew(journal: Journal, sender: Sender, before: str) -> None:
    unknown = [run for run, run_id in journal.run_ids.items() if not sender.knows(run_id)]
    for run in unknown:
        journal.send_anew(run)
    if unknown:
        names = ", ".join(journal.names[run] for run in unknown)
        warn(f"{journal.folder}: logged to {before} before, but {journal.uri} does not know {names}; logged there anew")


def _remove_old(folder: Path) -> None:
    """Remove a journal that is old, unless something else was put beside it."""
    journal = folder / FILE
    if time.time() - journal.stat().st_mtime > _KEPT and list(folder.iterdir()) == [journal]:
        shutil.rmtree(folder)

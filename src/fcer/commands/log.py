"""`fcer log`: send to MLflow what a command could not, because the server was gone or the command was killed."""

from pathlib import Path

from fcer.config import Resolved
from fcer.errors import FcerError, InputError
from fcer.runtime.work import Work
from fcer.tracking import count, find_journals, log_later

__all__ = ["run"]


def run(resolved: Resolved, folder: Path) -> None:
    """Log what is left of the journal in `folder`, or of every journal in it; a bare name is one in WORK/runs."""
    if not folder.exists():
        runs = Work(resolved.config.work).runs
        if not (runs / folder).exists():
            raise InputError(
                f"{folder}: there is no such folder, nor is it one in {runs}; name the folder of a journal"
            )
        folder = runs / folder
    refused: list[str] = []
    quiet = True
    for journal in find_journals(folder):
        delivery = log_later(journal)
        if delivery is None:
            print(f"{journal.name}: left alone, since its command is still at work")
        elif delivery.sent:
            print(f"{journal.name}: {count(delivery.sent.total())} logged to {', '.join(delivery.sent)}")
        refused += [f"{journal.name}, {sentence}" for sentence in (delivery.refused if delivery else [])]
        quiet = quiet and delivery is not None and not delivery.sent
    if refused:
        raise FcerError(f"{count(len(refused))} could not be logged, the first being {refused[0]}")
    if quiet:
        print(f"nothing left to log in {folder}")

"""The student that is served: the champion of now, taken anew when the alias moves, while requests go on."""

import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
from mlflow.exceptions import MlflowException

from fcer import __version__
from fcer.deploy.answers import Answers
from fcer.errors import FcerError
from fcer.models.calibration_files import load_calibration
from fcer.models.precision import FP32
from fcer.models.student_files import load_student
from fcer.registry.calibrations import CALIBRATED_BY
from fcer.registry.find_student import find_student
from fcer.runtime.files import scratch_folder
from fcer.tracking.server import failed, prepare_client

__all__ = ["Champion"]


class _Now(NamedTuple):
    """What answers requests: whoever has begun with it ends with it."""

    answers: Answers
    identity: dict[str, str]
    meant: tuple[str, str]
    """The version that the address meant, and the run that calibrated it last."""
    since: float


class Champion:
    """A student by its address, followed as the address moves."""

    def __init__(self, uri: str, work: Path, poll: float, precision: str = FP32) -> None:
        self.uri = uri
        self._work = work
        self._poll = poll
        self._precision = precision
        prepare_client()
        self._now = self._load()
        self._error = ""
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="watch the champion")

    @property
    def answers(self) -> Answers:
        """Of the student of now."""
        return self._now.answers

    @property
    def version(self) -> dict[str, Any]:
        """Which student answers, since when, and why a newer one does not."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now.since))
        about = {"fcer_version": __version__, "precision": self._precision, "since": since}
        return {**self._now.identity, **about, "reload_error": self._error or None}

    def follow(self) -> None:
        """Look after the alias from here on, in a thread."""
        if self._moves:
            self._watcher.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def look(self) -> None:
        """Take the student that the address means now, if it is another; where that fails, the old one stays."""
        try:
            if self._meant() != self._now.meant:
                self._now = self._load()
                print(f"now serving version {self._now.identity['version']} of {self.uri}", flush=True)
            self._error = ""
        except (FcerError, MlflowException, OSError) as error:
            said = " ".join(str(error).split())[:300]
            if said != self._error:
                print(f"fcer: warning: {self.uri} could not be reloaded ({said}); the old one stays", file=sys.stderr)
            self._error = said

    def _watch(self) -> None:
        while not self._stop.wait(self._poll):
            self.look()

    @property
    def _moves(self) -> bool:
        return self.uri.startswith("models:/") and "@" in self.uri

    def _meant(self) -> tuple[str, str]:
        name, _, alias = self.uri.removeprefix("models:/").partition("@")
        try:
            found = mlflow.MlflowClient().get_model_version_by_alias(name, alias)
        except MlflowException as error:
            raise failed(error) from error
        return str(found.version), str(found.tags.get(CALIBRATED_BY, ""))

    def _load(self) -> _Now:
        with scratch_folder(self._work, "served") as download:
            # Asked first: what changes in between is found when it is looked next
            meant = self._meant() if self._moves else ("", "")
            found = find_student(self.uri, download)
            loaded = load_student(found.folder, self._precision)
            calibration = load_calibration(found.folder, loaded.head.key)
            # All of it is in memory: the files may go
            return _Now(Answers(loaded, calibration), found.identity, meant, time.time())

"""A season replayed: each day every fire is forecast from what was known then, and the day after, verified."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock
from tqdm import tqdm

from fcer.data.fire import Fire
from fcer.data.fire_view import as_of
from fcer.deploy.map_files import MapFiles
from fcer.errors import ConfigError, DataError
from fcer.models.calibration_files import calibration_id
from fcer.runtime.files import atomic_path
from fcer.runtime.steps import Step
from fcer.verification.record import read_record, write_record
from fcer.verification.truth import FireTruth
from fcer.verification.verify import verify_maps

__all__ = ["NOTE", "Rehearsal"]

_SCHEMA = 1
NOTE = "rehearsal.json"


@dataclass(frozen=True)
class Rehearsal:
    """What is replayed, and what goes wrong in its middle."""

    fires: tuple[Fire, ...]
    files: MapFiles
    """The student that forecasts are made by."""
    swapped: MapFiles | None = None
    """From the middle on: another one, under the first one's name."""
    lost: int | None = None
    """A raw channel that is missing from the middle on."""

    @cached_property
    def days(self) -> list[date]:
        """Those that a forecast can be made on."""
        known = self.files.loaded.student.backbone.days
        return sorted({day for fire in self.fires if fire.dates for day in fire.dates[known - 1 : -1]})

    @property
    def middle(self) -> date | None:
        """From when on something is wrong; None where nothing is."""
        return self.days[len(self.days) // 2] if self.swapped is not None or self.lost is not None else None

    @property
    def step(self) -> Step:
        """All that decides the record."""
        calibration = self.files.calibration
        decided_by: dict[str, Any] = {
            "student": self.files.loaded.head.key,
            "calibration": calibration_id(calibration) if calibration else None,
            "swapped": self.swapped and self.swapped.loaded.head.key,
            "lost": self.lost,
            "threshold": self.files.threshold,
            "fires": [[fire.label, fire.days, fire.height, fire.width, _sizes(fire)] for fire in self.fires],
        }
        return Step(_SCHEMA, decided_by)

    def run(self, out: Path, say: Callable[[str], None]) -> pd.DataFrame:
        """The record, in `out` beside the maps; what is there of the same rehearsal is not done again."""
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".rehearsal.lock"):
            self._claim(out)
            return self._replay(out, say)

    def _claim(self, out: Path) -> None:
        note = out / NOTE
        if note.exists():
            if _key_of(note) != self.step.key:
                raise ConfigError(f"{out}: holds another rehearsal; choose another --out, or remove the folder")
        elif (out / "record.csv").exists():
            raise ConfigError(f"{out}: holds a record that no rehearsal made; choose another --out")
        with atomic_path(note) as partial:
            partial.write_text(json.dumps({"key": self.step.key, "middle": str(self.middle)}) + "\n")

    def _replay(self, out: Path, say: Callable[[str], None]) -> pd.DataFrame:
        record = read_record(out / "record.csv")
        told: set[str] = set()
        for day in tqdm(self.days, desc="rehearse", unit="day", disable=None, leave=False):
            paths = self._predict(day, out, told)
            verified = verify_maps(paths, FireTruth(self.fires, until=day + timedelta(days=1)), record)
            told |= set(verified.problems)
            if not verified.record.equals(record):
                record = verified.record
                write_record(out / "record.csv", record)
        for sentence in sorted(told):
            say(f"left out: {sentence}")
        return record

    def _predict(self, day: date, out: Path, told: set[str]) -> list[Path]:
        """The maps that are made at the end of a day, of the fires that had it and the days before."""
        wrong = self.middle is not None and day >= self.middle
        files = self.swapped if wrong and self.swapped else self.files
        known = files.loaded.student.backbone.days
        paths = []
        for fire in self.fires:
            if fire.dates is None or day not in fire.dates[known - 1 : -1]:
                continue
            path = out / "maps" / str(day + timedelta(days=1)) / f"{fire.year}_{fire.name}.tif"
            try:
                if not path.exists():
                    files.write(as_of(fire, day, self.lost, self.middle), path)
                    files.features.clear()
                paths.append(path)
            except DataError as error:
                told.add(str(error))
        return paths


def _key_of(note: Path) -> str | None:
    try:
        return str(json.loads(note.read_bytes())["key"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ConfigError(f"{note}: damaged; remove the folder, and the season is replayed again") from None


def _sizes(fire: Fire) -> Sequence[Sequence[int]]:
    return [[file.stat().st_size, file.stat().st_mtime_ns] for file in fire.files()]

"""One pass over a fire's numbers: its fingerprint, missing values and moments, remembered until it changes.

The fingerprint is of what a reader sees (dates and values), so it is the same on every machine, and the same
for a fire as HDF5 and as GeoTIFF.
"""

import hashlib
import json
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.fire import Fire
from fcer.errors import DataError, FcerWarning
from fcer.runtime.checksums import UNSEALED, seal, verify
from fcer.runtime.files import atomic_path
from fcer.runtime.parallel import map_tasks

__all__ = ["Survey", "dataset_fingerprint", "survey_fires"]

_SCHEMA = 1
"""Part of every remembered survey: raise it when what a survey holds or means changes."""


@dataclass(frozen=True)
class Survey:
    """What one pass over a fire found; lists have one entry for each raw channel."""

    digest: str
    missing: list[int]
    """NaN or infinite values; for active fire none, since there an absent value means no fire."""
    count: list[int]
    mean: list[float]
    squares: list[float]
    """Sum of squared deviations from the mean."""
    fire_pixels: int
    pixels: int

    def empty_channels(self) -> list[int]:
        """The channels without a single value. No active fire at all is a fact, not a gap."""
        return [c for c, n in enumerate(self.count) if n == 0 and c != ACTIVE_FIRE]


def survey_fires(fires: Sequence[Fire], *, cache: Path, workers: int = 0) -> dict[Fire, Survey | DataError]:
    """The survey of each fire: from `cache` while its files are unchanged, else by reading it.

    A fire that proves damaged on the way has its error instead: the rest stays usable.
    """
    surveys: dict[Path, Survey | DataError] = {
        fire.path: known for fire in fires if (known := _remembered(fire, cache)) is not None
    }
    unknown = [fire for fire in fires if fire.path not in surveys]
    before = {fire.path: _memory_of(fire, cache) for fire in unknown}
    for fire, survey in map_tasks(partial(_survey_and_remember, cache=cache), unknown, workers=workers, label="survey"):
        surveys[fire.path] = survey
        _warn_if_others(fire, before[fire.path], survey)
    return {fire: surveys[fire.path] for fire in fires}


def dataset_fingerprint(surveys: Mapping[Fire, Survey] | Iterable[tuple[Fire, Survey]]) -> str:
    """32 hexadecimal digits that change with any fire's name, dates or values."""
    pairs = surveys.items() if isinstance(surveys, Mapping) else surveys
    lines = sorted(f"{fire.year}/{fire.name} {survey.digest}\n" for fire, survey in pairs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:32]


def survey_fire(fire: Fire) -> Survey:
    """Read a fire once, a day at a time."""
    digest = hashlib.sha256(repr(fire.dates and [d.isoformat() for d in fire.dates]).encode())
    digest.update(struct.pack("<4q", fire.days, len(CHANNELS), fire.height, fire.width))
    n = np.zeros(len(CHANNELS), np.int64)
    mean, squares = np.zeros((2, len(CHANNELS)))
    missing = np.zeros(len(CHANNELS), np.int64)
    fire_pixels = 0
    for k in range(fire.days):
        day = fire.read(slice(k, k + 1), range(len(CHANNELS)))[0].reshape(len(CHANNELS), -1)
        day[np.isnan(day)] = np.nan  # one bit pattern for all, whoever wrote it
        digest.update(day.astype("<f4", copy=False).data)
        fire_pixels += int(np.count_nonzero(day[ACTIVE_FIRE] > 0))
        for c, values in enumerate(day):
            # Moments of the detection hour are over detections: "no fire" is no hour
            valid = values[values > 0] if c == ACTIVE_FIRE else values[np.isfinite(values)]
            missing[c] += 0 if c == ACTIVE_FIRE else values.size - valid.size
            if valid.size:
                m = float(valid.mean(dtype=np.float64))
                s = float(np.square(valid - np.float64(m)).sum())
                n[c], mean[c], squares[c] = merge_moments((n[c], mean[c], squares[c]), (valid.size, m, s))
    return Survey(
        digest=digest.hexdigest(),
        missing=missing.tolist(),
        count=n.tolist(),
        mean=mean.tolist(),
        squares=squares.tolist(),
        fire_pixels=fire_pixels,
        pixels=fire.days * fire.height * fire.width,
    )


def merge_moments(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    """(count, mean, sum of squared deviations) of two parts together, without the cancellation of sum(x²)."""
    (n_a, mean_a, squares_a), (n_b, mean_b, squares_b) = a, b
    n = n_a + n_b
    if n == 0:
        return a
    delta = mean_b - mean_a
    return n, mean_a + delta * n_b / n, squares_a + squares_b + delta**2 * n_a * n_b / n


def _survey_and_remember(fire: Fire, *, cache: Path) -> Survey | DataError:
    try:
        before = _identity(fire)
        survey = survey_fire(fire)
        if before == _identity(fire):  # else somebody is writing it: what was read may be neither old nor new
            with atomic_path(_memory(fire, cache)) as memory:
                memory.write_text(json.dumps({"checksum": UNSEALED, "files": before, "survey": asdict(survey)}))
                seal(memory)
        return survey
    except DataError as error:
        return error


def _remembered(fire: Fire, cache: Path) -> Survey | None:
    """What an earlier command found; None where there is nothing, of other files, or damaged: it is made anew."""
    files, survey = _memory_of(fire, cache)
    return survey if files == _identity(fire) else None


def _memory_of(fire: Fire, cache: Path) -> tuple[list[list[str | int]], Survey | None]:
    """The files that were read then, and what was found."""
    path = _memory(fire, cache)
    try:
        memory = json.loads(path.read_text()) if verify(path) else None
    except (FileNotFoundError, ValueError):
        memory = None
    return (memory["files"], Survey(**memory["survey"])) if memory else ([], None)


def _warn_if_others(fire: Fire, before: tuple[list[list[str | int]], Survey | None], now: Survey | DataError) -> None:
    """Where values are others in a file of the same size and date, nobody may have meant to write them."""
    files, known = before
    if known is None or isinstance(now, DataError) or known.digest == now.digest:
        return
    if [file[:-1] for file in files] == [file[:-1] for file in _identity(fire)]:
        warnings.warn(
            f"{fire.path}: its values are others than before, while its size and date are the same: it is damaged, or "
            "another file was put in its place; copy or make it again unless that was meant",
            FcerWarning,
            stacklevel=3,
        )


def _memory(fire: Fire, cache: Path) -> Path:
    key = hashlib.sha256(f"{_SCHEMA} {fire.path.resolve()}".encode()).hexdigest()[:32]
    return cache / "surveys" / f"{key}.json"


def _identity(fire: Fire) -> list[list[str | int]]:
    """What changes when a file's content does. The change time also catches copies that keep the old date."""
    stats = [(path.name, path.stat()) for path in fire.files()]
    return [[name, s.st_size, s.st_mtime_ns, s.st_ctime_ns] for name, s in stats]

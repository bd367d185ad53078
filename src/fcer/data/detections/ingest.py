"""Detections to fires in the dataset's layout: filtered, clustered, painted, written, and every one accounted for."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.config.bounded import parse_json
from fcer.data.detections.agreement import Agreement, pooled
from fcer.data.detections.complexes import join_overlapping
from fcer.data.detections.events import EARTH_KM, find_events
from fcer.data.detections.filters import STATIC, DetectionSettings, Filtered, drop
from fcer.data.detections.layers import Layers
from fcer.data.detections.read import read_detections
from fcer.data.detections.static import is_static
from fcer.data.detections.table import SATELLITES, Detections
from fcer.data.detections.write import IngestedFire, write_fire
from fcer.data.fire import SYNTHETIC
from fcer.errors import ConfigError, DataError
from fcer.runtime.files import file_digest, write_text

__all__ = ["MANIFEST", "Ingested", "are_synthetic", "ingest", "sources_of"]

MANIFEST = "detections.json"
"""What the fires of a folder were made of; written first, so that a folder never holds those of two sources."""


@dataclass(frozen=True)
class Ingested:
    """What was made of detections; those `read` are those `dropped` and those `in_fires`, to the last one."""

    read: dict[str, int]
    """By file."""
    dropped: dict[str, int]
    """By rule, in the rules' order."""
    fires: tuple[IngestedFire, ...]
    problems: tuple[str, ...]
    """A sentence for each fire that could not be written; its detections count as dropped."""
    incomplete: date | None
    """The last day, where it was set aside: it is in no fire, so it is never a label."""
    last_full_day: date
    """The last day that anything is known of: forecasts are for the day after."""
    agreement: Agreement | None
    """Of two satellites over all fires, where there are two."""

    @property
    def in_fires(self) -> int:
        """Detections that fires were made of."""
        return sum(fire.detections for fire in self.fires)

    def active(self) -> tuple[IngestedFire, ...]:
        """The fires that burnt on the last full day."""
        return tuple(fire for fire in self.fires if fire.last_seen == self.last_full_day == fire.days[-1])


def ingest(files: Sequence[Path], out: Path, settings: DetectionSettings, layers: Sequence[str] = ()) -> Ingested:
    """Write the fires in `files` below `out` as YEAR/fire_X.hdf5, and say what became of every detection."""
    rasters = Layers(layers)
    sources = sources_of(files, settings, layers)
    detections, read = read_detections(files)
    _claim(out, sources)
    found = drop(detections, settings)
    del detections
    dropped = dict(found.dropped)
    events = _events(found, settings, dropped)
    pair = _two_satellites(found.kept)
    fires: dict[Path, IngestedFire] = {}
    problems, lost, never = [], 0, are_synthetic(files)
    for members in events:
        try:
            fire = write_fire(out, found, members, settings, rasters, pair=pair, source=sources["key"], synthetic=never)
        except DataError as error:
            problems.append(str(error))
            lost += len(members)
        else:
            fires[fire.path] = fire
    dropped["in fires that could not be written"] = lost
    if not fires:
        raise DataError(problems[0] if problems else _nothing(read, dropped, settings))
    return Ingested(
        read=read,
        dropped={rule: n for rule, n in dropped.items() if n},
        fires=tuple(sorted(fires.values(), key=lambda fire: fire.path)),
        problems=tuple(problems),
        incomplete=found.incomplete,
        last_full_day=found.last_full_day,
        agreement=pooled([fire.agreement for fire in fires.values() if fire.agreement]),
    )


def are_synthetic(files: Sequence[Path]) -> bool:
    """Whether fires of these detections never burnt, all or some: a file of such detections says so by its name."""
    return any(SYNTHETIC in path.name.lower() for path in files)


def sources_of(files: Sequence[Path], settings: DetectionSettings, layers: Sequence[str] = ()) -> dict[str, Any]:
    """All that decides the fires, with a `key` that changes with any of it."""
    digests = [[path.name, file_digest(path)] for path in files if path.is_file()]
    said = {"files": digests, "settings": asdict(settings), "layers": list(layers)}
    key = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:12]
    return json.loads(json.dumps({"key": key, **said}))  # type: ignore[no-any-return]


def _key_of(manifest: Path) -> str | None:
    """Which detections and settings a folder's fires are of; None where its description is damaged."""
    try:
        return str(parse_json(manifest.read_text())["key"])
    except (ValueError, KeyError, TypeError):
        return None


def _claim(out: Path, sources: dict[str, Any]) -> None:
    manifest = out / MANIFEST
    if not manifest.exists() and out.is_dir() and any(p.name.isdigit() for p in out.iterdir()):
        raise ConfigError(f"{out}: holds fires that were not made by `fcer ingest`; choose another --out")
    if manifest.exists() and _key_of(manifest) != sources["key"]:
        raise ConfigError(
            f"{out}: holds the fires of other detections or settings; choose another --out, or remove the folder"
        )
    write_text(manifest, json.dumps(sources, indent=1) + "\n")


def _events(found: Filtered, settings: DetectionSettings, dropped: dict[str, int]) -> list[NDArray[np.int64]]:
    """The places of each event's detections; what is in none, or in one that is no fire to learn from, is counted."""
    kept, days = found.kept, found.days
    event = find_events(kept, days, near_km=settings.near_km, near_days=settings.near_days)
    order = np.argsort(event, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(event[order])) + 1) if len(order) else []
    left = [members for members in groups if event[members[0]] >= 0]
    dropped["alone, in no cluster"] = len(event) - sum(map(len, left))

    def keep(rule: str, wanted: Callable[[NDArray[np.int64]], bool]) -> None:
        nonlocal left
        dropped[rule] = dropped.get(rule, 0) + sum(len(members) for members in left if not wanted(members))
        left = [members for members in left if wanted(members)]

    keep(f"in fires of fewer than {settings.min_detections}", lambda m: len(m) >= settings.min_detections)
    keep(STATIC, lambda m: not is_static(kept[m], days[m]))
    keep(
        f"in fires that did not spread {settings.min_extent_km:g} km",
        lambda m: _extent_km(kept[m]) >= settings.min_extent_km,
    )
    return join_overlapping(kept, days, left)


def _extent_km(event: Detections) -> float:
    """From one end to the other, east-west or north-south, whichever is longer."""
    vectors = event.unit_vectors()
    middle = vectors.mean(0)
    east = np.array([-middle[1], middle[0], 0]) / np.hypot(middle[0], middle[1])
    return EARTH_KM * float(max(np.ptp(vectors @ east), np.ptp(np.radians(event.latitude))))


def _two_satellites(kept: Detections) -> tuple[int, int] | None:
    """The two with most detections, where there are two."""
    counts = np.bincount(kept.satellite, minlength=len(SATELLITES))
    first, second = (int(k) for k in np.sort(np.argsort(-counts, kind="stable")[:2]))
    return (first, second) if counts[first] and counts[second] else None


def _nothing(read: dict[str, int], dropped: dict[str, int], settings: DetectionSettings) -> str:
    most = max(dropped, key=lambda rule: dropped[rule])
    return (
        f"{', '.join(read)}: no fire among {sum(read.values())} detections; {dropped[most]} are dropped as {most!r}: "
        f"give more days, or a smaller --min-detections (now {settings.min_detections})"
    )

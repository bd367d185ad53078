"""Rules that drop detections, one after the other: each detection is dropped by the first that applies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from fcer.data.detections.columns import satellite_code
from fcer.data.detections.days import date_of, day_number, incomplete_day
from fcer.data.detections.static import static_sources
from fcer.data.detections.table import CONFIDENCES, SATELLITES, Detections
from fcer.errors import ConfigError

__all__ = ["STATIC", "DetectionSettings", "Filtered", "drop", "satellite_number"]

STATIC = "static sources"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class DetectionSettings:
    """What decides the fires that are made of detections."""

    confidence: str = "nominal"
    """The least that counts. Those of low confidence are mostly the sun's glint, by day."""
    satellites: tuple[str, ...] = ()
    """Names or letters; none: all."""
    bbox: tuple[float, ...] = ()
    """West, south, east, north in degrees; west may be the larger one, across the date line."""
    dates: tuple[str, ...] = ()
    """First and last day, both included."""
    day: str = "utc"
    """Which day a detection belongs to: `utc` as in WildfireSpreadTS, or `solar` time at its longitude."""
    min_detections: int = 80
    """Of a fire: 80 pixels are 11 km²; WildfireSpreadTS holds fires of 10 km² and more."""
    min_extent_km: float = 3.0
    """From one end of a fire to the other: what is smaller did not spread, and has no next day to learn."""
    near_km: float = 5.0
    """How far apart detections of one fire may be: nine tenths of new fire lie within 6 km of the day before's."""
    near_days: float = 3.0
    """After how many days a fire that was not seen in between, for cloud or smoke, is still the same."""
    margin: int = 16
    """Pixels around a fire: 6 km, which hold nine tenths of the next day's new fire."""
    min_side: int = 128
    """Of an image in px, so that the default crop fits."""
    lead_days: int = 4
    """Days before the first detection and after the last one that belong to a fire, as far as the files go."""

    def __post_init__(self) -> None:
        if self.confidence not in CONFIDENCES:
            raise ConfigError(f"confidence: {self.confidence!r} is not one of {', '.join(CONFIDENCES)}")
        for name in self.satellites:
            satellite_number(name)
        if self.bbox:
            _check_box(self.bbox)
        if self.dates:
            self.date_range()

    def date_range(self) -> tuple[date, date]:
        """The first and the last day."""
        try:
            first, last = (date.fromisoformat(text) for text in self.dates)
        except ValueError:
            first, last = date.max, date.min
        if first > last:
            given = " ".join(self.dates)
            raise ConfigError(f"dates: {given} is no period; give the first and the last day, 2020-09-26 2020-10-02")
        return first, last


def satellite_number(name: str) -> int:
    """The place in SATELLITES of a name or letter."""
    number = satellite_code(name)
    if number is None or number < 0:
        raise ConfigError(f"satellites: {name!r} is not one of {', '.join(SATELLITES)} (N, 1, 2)")
    return number


@dataclass(frozen=True)
class Filtered:
    """What is left in the order of time, and how many each rule dropped, in the rules' order."""

    kept: Detections
    days: NDArray[np.int32]
    dropped: dict[str, int]
    first_day: int
    day_counts: NDArray[np.int64]
    """Detections of whatever quality on each day from the first one on, up to the last full one."""
    incomplete: date | None
    """The last day, where it was set aside."""

    @property
    def last_full_day(self) -> date:
        """The last day that anything is known of."""
        return date_of(self.first_day + len(self.day_counts) - 1)


def drop(detections: Detections, settings: DetectionSettings) -> Filtered:
    """Apply every rule."""
    dropped: dict[str, int] = {}
    detections = _apply(iter([("repeated", _repeated)]), detections, dropped)
    incomplete = incomplete_day(detections, detections.days(settings.day))
    detections = _apply(_which(settings), detections, dropped)
    days = detections.days(settings.day)
    full = days[days != incomplete] if len(days) else days
    first = int(full.min(initial=2**30))
    counts = np.bincount(full - first) if len(full) else np.zeros(0, np.int64)
    detections = _apply(_how_good(settings, incomplete), detections, dropped)
    detections = detections[np.argsort(detections.time, kind="stable")]
    return Filtered(
        kept=detections,
        days=detections.days(settings.day),
        dropped=dropped,
        first_day=first,
        day_counts=counts,
        incomplete=None if incomplete is None else date_of(incomplete),
    )


_Rules = Iterator[tuple[str, Callable[[Detections], Mask]]]


def _apply(rules: _Rules, detections: Detections, dropped: dict[str, int]) -> Detections:
    for name, bad in rules:
        wrong = bad(detections)
        dropped[name] = int(wrong.sum())
        if dropped[name]:
            detections = detections[~wrong]
    return detections


def _which(settings: DetectionSettings) -> _Rules:
    """Rules that decide of which days and satellites anything is known."""
    if settings.dates:
        first, last = map(day_number, settings.date_range())
        yield "other dates", lambda d: (d.days(settings.day) < first) | (d.days(settings.day) > last)
    if settings.satellites:
        wanted = [satellite_number(name) for name in settings.satellites]
        yield "other satellites", lambda d: ~np.isin(d.satellite, wanted)


def _how_good(settings: DetectionSettings, incomplete: int | None) -> _Rules:
    if settings.bbox:
        yield "outside the box", lambda d: ~_inside(d, settings.bbox)
    least = CONFIDENCES.index(settings.confidence)
    yield f"confidence below {settings.confidence}", lambda d: d.confidence < least
    yield "no vegetation fire (type)", lambda d: d.kind > 0
    if incomplete is not None:
        yield "last day, incomplete", lambda d: d.days(settings.day) == incomplete
    yield STATIC, lambda d: static_sources(d, d.days(settings.day))


_SAME_DEGREES = 1e-4
"""11 m: pixels of one overpass that are nearer show the same ground, where scans overlap."""
_SAME_MINUTES = 12
"""Files of two products may name the beginning or the middle of the same six-minute granule."""


def _repeated(d: Detections) -> Mask:
    """What is there already: the same satellite at the same place within minutes. The standard product goes first."""
    left = np.arange(len(d))
    # Two that are near may lie in two cells; of four grids, each half a cell further on, one has them in the same cell
    for north, east in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)):
        left = left[_first_of_each(d[left], north, east)]
    repeated = np.ones(len(d), bool)
    repeated[left] = False
    return repeated


def _first_of_each(d: Detections, north: float, east: float) -> NDArray[np.int64]:
    """The places of detections without those that repeat one in the same cell of a grid."""
    rows, columns = np.floor(d.latitude / _SAME_DEGREES + north), np.floor(d.longitude / _SAME_DEGREES + east)
    place = ((rows + 900_001) * 3_600_003 + columns + 1_800_001).astype(np.int64) * len(SATELLITES) + d.satellite
    order = np.lexsort((d.time, place))
    again = (np.diff(place[order]) == 0) & (np.diff(d.time[order]) <= _SAME_MINUTES)
    run = np.concatenate([[0], np.cumsum(~again)])
    best = np.lexsort((order, d.provisional[order], run))
    return np.sort(order[best[np.unique(run[best], return_index=True)[1]]])


def _inside(d: Detections, box: tuple[float, ...]) -> Mask:
    west, south, east, north = box
    across = (d.longitude >= west) & (d.longitude <= east)
    if west > east:
        across = (d.longitude >= west) | (d.longitude <= east)
    return across & (d.latitude >= south) & (d.latitude <= north)


def _check_box(box: tuple[float, ...]) -> None:
    given = " ".join(f"{number:g}" for number in box)
    if len(box) != 4 or not (-90 <= box[1] < box[3] <= 90) or max(abs(box[0]), abs(box[2])) > 180:
        raise ConfigError(f"bbox: {given} is no box; give west, south, east, north in degrees: -125 31 -105 49")

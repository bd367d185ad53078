"""What burnt, put on a forecast's own grid: from detections, or from a dataset that has the day by now."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from fcer.core.arrays import BoolArray, FloatArray, IntArray
from fcer.core.regions import PIXEL_METRES
from fcer.data.catalog import open_fires
from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.detection_files import is_detections
from fcer.data.detections.days import date_of, day_number, unseen_days
from fcer.data.detections.filters import DetectionSettings, Filtered, drop
from fcer.data.detections.grid import Grid, paint
from fcer.data.detections.read import read_detections
from fcer.data.detections.table import SATELLITES
from fcer.data.fire import Fire
from fcer.errors import ConfigError, DataError
from fcer.verification.forecast import Forecast

__all__ = ["MISSING", "SEEN", "WAITING", "Truth", "TruthSource", "open_truth"]

SEEN, WAITING, MISSING = "verified", "waiting", "missing"
"""What is known of a day: what burnt; nothing yet; and nothing, for ever, as under cloud."""
_MANY = 30
"""Detections of a satellite's day, after which a day without any is not chance."""


class Truth(NamedTuple):
    """What is known of a forecast's day."""

    status: str
    burnt: BoolArray | None
    """(H, W), where it was seen."""
    reason: str
    """Why not, where it was not."""
    before: BoolArray | None = None
    """What burnt on the day that the forecast was made from, where that was seen."""


class TruthSource(Protocol):
    """Something that knows what burnt."""

    def of(self, forecast: Forecast) -> Truth:
        """On the forecast's day and grid; a DataError where the two cannot be laid over each other."""


def open_truth(against: Sequence[Path], settings: DetectionSettings, until: date | None = None) -> TruthSource:
    """Files of detections, or one folder of fires; `until` is the last day that counts as known, for rehearsals."""
    if against and all(is_detections(path) for path in against):
        detections, _ = read_detections(against)
        return DetectionTruth(drop(detections, settings))
    if len(against) != 1:
        raise ConfigError("against: give files of detections (CSV or JSON), or one dataset folder")
    return FireTruth(open_fires(against[0]).fires, until)


@dataclass(frozen=True)
class DetectionTruth:
    """Detections of some days, after the same rules that make fires of them."""

    found: Filtered

    def of(self, forecast: Forecast) -> Truth:
        """Painted as fires are."""
        if not len(self.found.day_counts):
            return Truth(WAITING, None, f"the detections hold no whole day; give those of {forecast.day}")
        day, first = day_number(forecast.day), self.found.first_day
        last = first + len(self.found.day_counts) - 1
        if self.found.incomplete is not None and forecast.day == self.found.incomplete:
            return Truth(WAITING, None, f"{forecast.day} is not over in the download; give one of a later day")
        if day > last:
            return Truth(WAITING, None, f"the detections end with {date_of(last)}; give those of {forecast.day}")
        for satellite, end in self._behind.items():
            if day > end:
                remedy = f"give those of {forecast.day}, or leave it out with --satellites"
                return Truth(WAITING, None, f"the detections of {satellite} end with {date_of(end)}; {remedy}")
        if day < first:
            return Truth(MISSING, None, f"the detections begin with {date_of(first)}, after {forecast.day}")
        grid = _grid_of(forecast)
        row, column = grid.pixels(self.found.kept)
        counts = self._counts(grid, row, column, last)
        if not counts.any():
            return Truth(MISSING, None, "the detections hold nothing, on any day, where the forecast lies")
        burnt, anywhere = self._painted(grid, row, column, day), self.found.day_counts
        truth = _unless_hidden(burnt, counts, day - first, anywhere, last - day, forecast.day)
        made = day_number(forecast.last_input)
        seen = truth.status == SEEN and made >= first and anywhere[made - first] > 0
        return truth._replace(before=self._painted(grid, row, column, made)) if seen else truth

    @cached_property
    def _behind(self) -> dict[str, int]:
        """Satellites whose detections end a day or two before the others', with the last day that they have whole.

        One of two downloads is then older. A satellite that is silent for longer is not waited for.
        """
        kept, days = self.found.kept, self.found.days
        last, behind = int(days.max(initial=0)), {}
        for number in np.unique(kept.satellite):
            end = int(days[kept.satellite == number].max())
            of_end = (kept.satellite == number) & (days == end)
            if last - 2 <= end < last and np.count_nonzero(of_end) >= _MANY:
                behind[SATELLITES[number]] = end - int(kept.provisional[of_end].any())
        return behind

    def _counts(self, grid: Grid, row: FloatArray, column: FloatArray, last: int) -> IntArray:
        """How many detections each day has in the image."""
        found = self.found
        inside = (row >= 0) & (row < grid.height) & (column >= 0) & (column < grid.width)
        inside &= (found.days >= found.first_day) & (found.days <= last)
        return np.bincount(found.days[inside] - found.first_day, minlength=len(found.day_counts))

    def _painted(self, grid: Grid, row: FloatArray, column: FloatArray, day: int) -> BoolArray:
        """Where a day has detections."""
        found = self.found
        # A pixel beyond the edge may reach in
        around = (row > -8) & (row < grid.height + 8) & (column > -8) & (column < grid.width + 8) & (found.days == day)
        return np.asarray(paint(grid, found.kept[around], np.zeros(np.count_nonzero(around), np.int64), 1)[0] > 0)


def _unless_hidden(burnt: BoolArray, counts: np.ndarray, k: int, anywhere: np.ndarray, later: int, day: date) -> Truth:
    """The truth, unless nearly nothing was seen between full days: those are cloud or smoke, not the fire's end."""
    if anywhere[k] == 0 or unseen_days(anywhere)[k] or unseen_days(counts)[k]:
        return Truth(MISSING, None, f"hardly anything was seen on {day}, between days of fire: cloud, smoke or a gap")
    # Whether it is the end or a cloud, the two days after tell: as if they were full days
    if later < 2 and unseen_days(np.append(counts[: k + 1], counts[: k + 1].max()))[k]:
        return Truth(WAITING, None, f"hardly anything was seen on {day}: the two days after tell whether it was cloud")
    return Truth(SEEN, burnt, "")


def _grid_of(forecast: Forecast) -> Grid:
    """The forecast's grid as detections are painted on: 375 m, north up, in a UTM zone."""
    place = forecast.place
    code = place.crs.partition(":")[2] if place is not None and place.crs is not None else ""
    straight = place is not None and np.allclose(
        np.array(place.transform)[[0, 1, 3, 4]], [PIXEL_METRES, 0, 0, -PIXEL_METRES]
    )
    if place is None or not straight or not code.isdigit() or int(code) // 100 not in (326, 327):
        raise DataError(
            f"{forecast.path}: its grid is not one of 375 m in a UTM zone, on which detections can be painted; "
            "verify it against a dataset of its own grid"
        )
    return Grid(int(code), place.transform[2], place.transform[5], *forecast.shape)


@dataclass(frozen=True)
class FireTruth:
    """Fires of a dataset."""

    fires: tuple[Fire, ...]
    until: date | None = None

    def of(self, forecast: Forecast) -> Truth:
        """The active fire of the day, of the fire with the forecast's name or of one whose image holds its grid."""
        fitting = [(fire, at) for fire in self._candidates(forecast) if (at := _window(fire, forecast)) is not None]
        if not fitting:
            raise DataError(self._why_none(forecast))
        for fire, (rows, columns) in fitting:
            assert fire.dates is not None
            if forecast.day in fire.dates and (self.until is None or forecast.day <= self.until):
                return _of_day(fire, fire.dates.index(forecast.day), rows, columns, forecast.last_input)
        fire = fitting[0][0]
        assert fire.dates is not None
        last = min(fire.dates[-1], self.until or fire.dates[-1])
        if forecast.day > last:
            return Truth(WAITING, None, f"{fire.path} ends with {last}; add {forecast.day} to it")
        return Truth(MISSING, None, f"{fire.path} has no {forecast.day}")

    @cached_property
    def _by_name(self) -> dict[str, list[Fire]]:
        named: dict[str, list[Fire]] = {}
        for fire in self.fires:
            if fire.dates is not None:
                named.setdefault(fire.name, []).append(fire)
        return named

    def _candidates(self, forecast: Forecast) -> list[Fire]:
        """Those of the name and about the time, or else all."""
        near = timedelta(days=60)
        own = [
            fire
            for fire in self._by_name.get(forecast.fire, [])
            if fire.dates and fire.dates[0] - near <= forecast.day <= fire.dates[-1] + near
        ]
        return own or [fire for fires in self._by_name.values() for fire in fires if fire.place is not None]

    def _why_none(self, forecast: Forecast) -> str:
        if forecast.fire in self._by_name:
            (fire, *_) = self._by_name[forecast.fire]
            return (
                f"{forecast.path}: lies on another grid than {fire.path}, whose image does not hold it; "
                "verify it against the data that it was predicted from"
            )
        return f"{forecast.path}: the dataset has no fire {forecast.fire} and none whose image holds the forecast's"


def _window(fire: Fire, forecast: Forecast) -> tuple[slice, slice] | None:
    """Where in a fire's image the forecast's pixels lie, exactly; None where they do not."""
    height, width = forecast.shape
    if fire.place is None or forecast.place is None:
        same = fire.place is None and forecast.place is None and fire.name == forecast.fire
        return (slice(0, height), slice(0, width)) if same and (fire.height, fire.width) == forecast.shape else None
    theirs, ours = fire.place.transform, forecast.place.transform
    if not _same_crs(fire.place.crs, forecast.place.crs) or not np.allclose(
        np.array(theirs)[[0, 1, 3, 4]], np.array(ours)[[0, 1, 3, 4]], rtol=1e-9, atol=1e-9
    ):
        return None
    a, b, _, d, e, _ = ours
    east, north = ours[2] - theirs[2], ours[5] - theirs[5]
    column, row = np.linalg.solve([[a, b], [d, e]], [east, north])
    top, left = round(row), round(column)
    if not math.isclose(row, top, abs_tol=1e-3) or not math.isclose(column, left, abs_tol=1e-3):
        return None
    if top < 0 or left < 0 or top + height > fire.height or left + width > fire.width:
        return None
    return slice(top, top + height), slice(left, left + width)


def _same_crs(ours: str | None, theirs: str | None) -> bool:
    if ours == theirs:
        return True
    if ours is None or theirs is None:
        return False
    from rasterio.crs import CRS
    from rasterio.errors import CRSError

    try:
        return bool(CRS.from_user_input(ours) == CRS.from_user_input(theirs))
    except CRSError:
        return False


def _of_day(fire: Fire, day: int, rows: slice, columns: slice, made: date) -> Truth:
    """What burnt; missing where all that the fire's file tells on its day before is not there, and no fire either."""
    images = fire.read(slice(max(0, day - 1), day + 1), range(len(CHANNELS)), rows, columns)
    burnt = images[-1, ACTIVE_FIRE] > 0
    known = (~np.isnan(np.delete(images, ACTIVE_FIRE, axis=1))).any(axis=(1, 2, 3)).tolist()
    assert fire.dates is not None
    if not burnt.any() and known == [True, False]:
        return Truth(MISSING, None, f"{fire.path} holds nothing of {fire.dates[day]}")
    known_before = day > 0 and fire.dates[day - 1] == made
    return Truth(SEEN, burnt, "", images[0, ACTIVE_FIRE] > 0 if known_before else None)

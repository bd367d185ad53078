"""A fire as it was known on some day, and without a channel from some day on: what a rehearsal of a season sees."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.data.fire import EVERYWHERE, Fire

__all__ = ["FireAsOf", "as_of"]


@dataclass(eq=False)
class FireAsOf(Fire):
    """The first days of another fire."""

    whole: Fire = field(kw_only=True)
    lost: int | None = field(default=None, kw_only=True)
    """A raw channel that is missing."""
    lost_since: date | None = field(default=None, kw_only=True)

    def read(
        self, days: slice, channels: Sequence[int], rows: slice = EVERYWHERE, columns: slice = EVERYWHERE
    ) -> NDArray[np.float32]:
        """As the whole fire, as far as its days are known."""
        known = range(*days.indices(self.days))
        window = self.whole.read(slice(known.start, known.stop), channels, rows, columns)
        if self.lost is not None and self.lost in channels and self.lost_since is not None and self.dates is not None:
            gone = [k for k, day in enumerate(known) if self.dates[day] >= self.lost_since]
            window[gone, list(channels).index(self.lost)] = np.nan
        return window

    def files(self) -> list[Path]:
        """Those of the whole fire."""
        return self.whole.files()


def as_of(fire: Fire, day: date, lost: int | None = None, lost_since: date | None = None) -> FireAsOf:
    """The fire up to and with a day that it has; with `lost`, without that channel from `lost_since` on."""
    assert fire.dates is not None
    days = fire.dates.index(day) + 1
    return FireAsOf(
        fire.path,
        fire.year,
        fire.name,
        days,
        fire.height,
        fire.width,
        fire.dates[:days],
        place=fire.place,
        lnglat=fire.lnglat,
        whole=fire,
        lost=lost,
        lost_since=lost_since,
    )

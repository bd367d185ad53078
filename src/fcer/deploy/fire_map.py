"""A fire's latest days, whole, through a student: what it says of tomorrow, pixel by pixel."""

from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from fcer.core.arrays import BoolArray
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.fire import Fire
from fcer.data.input_summary import InputSummary, summarise_input
from fcer.errors import DataError, InputError
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student_files import LoadedStudent

__all__ = ["FireMap", "predict_fire"]


@dataclass(frozen=True)
class FireMap:
    """Maps (H, W) of the day after the last one; NaN where the input held nothing."""

    probability: NDArray[np.float32]
    uncertainty: NDArray[np.float32]
    today: BoolArray
    """Active fire of the last day."""
    dates: tuple[date, ...] | None
    """The days that were read; None where the file does not say."""
    summary: InputSummary = field(default_factory=lambda: InputSummary((), {}))
    """Of what was read."""

    @property
    def predicted(self) -> date | None:
        """The day that the map is of."""
        return self.dates[-1] + timedelta(days=1) if self.dates else None

    def fire(self, threshold: float) -> BoolArray:
        """Where the probability is above the threshold; not where nothing is known."""
        return np.asarray(self.probability > threshold)


def predict_fire(loaded: LoadedStudent, fire: Fire) -> FireMap:
    """The map after the fire's latest days, as many as the student reads; of the whole image, whatever its size.

    The input holds nothing of a pixel where all that is needed of it but active fire is missing on every day: no
    active fire is what files say of it then, too.
    """
    days, channels = fire.latest_days(loaded.student.backbone.days), needed_channels(loaded)
    raw = fire.read(days, channels)
    try:
        maps = predict_days(loaded, raw[None])
    except InputError as error:
        raise DataError(f"{fire.path}: {error}") from None
    others = [k for k, channel in enumerate(channels) if channel != ACTIVE_FIRE]
    unknown = np.isnan(raw[:, others]).all(axis=(0, 1)) if others else np.zeros(raw.shape[2:], bool)
    if unknown.all():
        raise DataError(
            f"{fire.path}: every value of its latest {len(raw)} days is missing, in the channels that this student "
            "reads; give --model a student of such data, or download the fire again"
        )
    probability, uncertainty = (map_BHW[0].cpu().numpy().copy() for map_BHW in maps)
    probability[unknown] = uncertainty[unknown] = np.nan
    today = raw[-1, channels.index(ACTIVE_FIRE)] > 0
    summary = summarise_input(raw, channels, loaded.normalization)
    return FireMap(probability, uncertainty, today, fire.dates[days] if fire.dates else None, summary)

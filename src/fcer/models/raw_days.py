"""What a deployed student is given: a fire's days as they lie in files, neither chosen nor standardised.

Shape suffixes: B samples, T days, C raw channels, H height, W width.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, CHANNELS, raw_channel
from fcer.data.samples import preprocess
from fcer.errors import InputError
from fcer.models.student import StudentMaps
from fcer.models.student_files import LoadedStudent

__all__ = ["needed_channels", "predict_days"]


def needed_channels(loaded: LoadedStudent) -> list[int]:
    """The raw channels that a student reads, ascending."""
    return sorted({raw_channel(feature) for feature in loaded.backbone.features} | {ACTIVE_FIRE})


def predict_days(loaded: LoadedStudent, raw_BTCHW: NDArray[np.float32]) -> StudentMaps:
    """Probability and uncertainty (B, H, W) from raw days: all 23 channels, or those that are needed, in order.

    Standardisation happens here, with the backbone's statistics. NaN is a missing value; active fire is the hour of
    detection, 0 or NaN where there is none.
    """
    raw = _checked(loaded, np.asarray(raw_BTCHW))
    features = loaded.backbone.features
    x = [preprocess(days, needed_channels(loaded), features, loaded.normalization) for days in raw]
    return loaded.student.predict(torch.from_numpy(np.stack(x)))


def _checked(loaded: LoadedStudent, raw: NDArray[np.float32]) -> NDArray[np.float32]:
    """The needed channels of an input that can be one, in single precision."""
    days, needed = loaded.student.backbone.days, needed_channels(loaded)
    names = ", ".join(f"{CHANNELS[channel]} ({channel})" for channel in needed)
    expected = (
        f"(samples, {days} days, channels, rows, columns) with all {len(CHANNELS)} raw channels or these "
        f"{len(needed)}: {names}"
    )
    if raw.dtype.kind not in "fiu":
        raise InputError(f"input: numbers are needed, not {raw.dtype}; give {expected}")
    if raw.ndim != 5 or raw.shape[1] != days or raw.shape[2] not in (len(CHANNELS), len(needed)) or 0 in raw.shape:
        raise InputError(f"input: shape {raw.shape} does not fit; give {expected}")
    if raw.shape[2] == len(CHANNELS):
        raw = raw[:, :, needed]
    if np.isinf(raw).any():
        raise InputError("input: it holds infinite values; give NaN where a value is missing")
    return raw.astype(np.float32, copy=False)

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

_PASS = 2**18
"""Pixels of a pass through the student at most, or one image: its inner maps take several hundred bytes for each."""


def needed_channels(loaded: LoadedStudent) -> list[int]:
    """The raw channels that a student reads, ascending."""
    return sorted({raw_channel(feature) for feature in loaded.backbone.features} | {ACTIVE_FIRE})


def predict_days(loaded: LoadedStudent, raw_BTCHW: NDArray[np.float32]) -> StudentMaps:
    """Probability and uncertainty (B, H, W) from raw days: all 23 channels, or those that are needed, in order.

    Standardisation happens here, with the backbone's statistics. NaN is a missing value; active fire is the hour of
    detection, 0 or NaN where there is none.
    """
    raw = _checked(loaded, np.asarray(raw_BTCHW))
    needed, features = needed_channels(loaded), loaded.backbone.features
    pieces = []
    batch = max(1, _PASS // (raw.shape[-2] * raw.shape[-1]))
    for start in range(0, len(raw), batch):
        x = [preprocess(days, needed, features, loaded.normalization) for days in raw[start : start + batch]]
        pieces.append(loaded.student.predict(torch.from_numpy(np.stack(x)), loaded.precision))
    return StudentMaps(*(torch.cat(maps) for maps in zip(*pieces, strict=True)))


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
    with np.errstate(over="ignore"):  # infinite then, which is looked for
        raw = raw.astype(np.float32, copy=False)
    if np.isinf(raw).any():
        raise InputError("input: it holds infinite values; give NaN where a value is missing")
    if (empty := np.isnan(raw).all(axis=(1, 2, 3, 4))).any():
        raise InputError(
            f"input: sample {empty.argmax()} (of 0 to {len(raw) - 1}) holds nothing but NaN in the channels that are "
            f"needed; leave it out, or give values for {names}"
        )
    return raw

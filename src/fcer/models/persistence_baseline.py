"""The baseline that every model must beat: tomorrow burns what burns today."""

import numpy as np
from numpy.typing import NDArray

from fcer.core.segmentation import average_precision_score
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.samples import Samples, central_crop

__all__ = ["burning_today", "persistence_ap"]


def burning_today(days: NDArray[np.float32], samples: Samples) -> NDArray[np.bool_]:
    """Where fire burns on the last of a sample's raw days (days, channels, rows, columns), as `samples` reads them."""
    return np.asarray(days[-1, samples.channels.index(ACTIVE_FIRE)] > 0)


def persistence_ap(samples: Samples) -> float:
    """Average precision of "burns on the last day seen" as the score for the day after, over all pixels together.

    Of central crops, or whole images where samples are not cropped; NaN with a warning where no day after holds fire.
    """
    crop = samples.crop
    burning, burnt = [np.empty(0, np.bool_)], [np.empty(0, np.bool_)]
    for fire, first in map(samples.locate, range(len(samples))):
        window = [slice(None) if crop is None else central_crop(size, crop) for size in (fire.height, fire.width)]
        # two days of one channel are all that is needed
        last = first + samples.days - 1
        today, tomorrow = fire.read(slice(last, last + 2), (ACTIVE_FIRE,), *window)[:, 0] > 0
        burning.append(today.ravel())
        burnt.append(tomorrow.ravel())
    return average_precision_score(np.concatenate(burnt), np.concatenate(burning))

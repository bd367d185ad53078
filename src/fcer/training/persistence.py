"""The baseline that every model must beat: tomorrow burns what burns today."""

import copy

import numpy as np

from fcer.core.segmentation import average_precision_score
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.samples import Samples

__all__ = ["persistence_ap"]


def persistence_ap(samples: Samples) -> float:
    """Average precision of "burns on the last day seen" as the score for the day after, over all pixels together.

    NaN with a warning where no day after holds fire.
    """
    fires = copy.copy(samples)
    fires.channels = [ACTIVE_FIRE]  # all that is needed of a day
    burning, burnt = [np.empty(0, np.uint8)], [np.empty(0, np.uint8)]
    for index in range(len(fires)):
        days, tomorrow = fires.raw(index)
        burning.append((days[-1, 0] > 0).ravel().astype(np.uint8))
        burnt.append(tomorrow.ravel())
    return average_precision_score(np.concatenate(burnt), np.concatenate(burning))

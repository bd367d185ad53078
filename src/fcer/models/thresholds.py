"""Where a probability becomes a prediction of fire."""

import math

from fcer.errors import ConfigError

__all__ = ["BALANCED", "settle_threshold", "threshold_logit"]

BALANCED = "balanced"


def settle_threshold(asked: float | str, pos_weight: float | None) -> float:
    """The threshold as a number; `balanced` undoes the weight that burning pixels had in a backbone's training.

    A model trained with a weight w says w p / (1 - p + w p) where the chance is p: one half becomes w / (1 + w).

    >>> settle_threshold("balanced", 10.0) == 10 / 11
    True
    """
    if asked != BALANCED:
        return float(asked)
    if pos_weight is None:
        raise ConfigError(
            "threshold: balanced undoes the weight of burning pixels in training, which the backbone's checkpoint does "
            "not say; train it again, or give a number"
        )
    return pos_weight / (1 + pos_weight)


def threshold_logit(threshold: float) -> float:
    """The logit above which a pixel counts as fire."""
    if threshold in (0, 1):
        return math.inf if threshold else -math.inf
    return math.log(threshold / (1 - threshold))

"""Losses between a student's uncertainty, as logits, and its teacher's, for the images of a batch (B, P pixels).

Each has its value, for torch to differentiate, and its slope written out: the derivative by each pixel's logit. Both
take the teacher's uncertainty prepared: what depends on it alone is computed once, not in every epoch.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["LOSSES", "Loss", "bce", "mse", "rmsle"]

_TINY = 1e-12
"""Under the root, whose slope is infinite at zero."""


def rmsle(logits_BP: Tensor, log_target_BP: Tensor) -> Tensor:
    """Root of the mean squared difference of log(1 + uncertainty) over an image's pixels; mean over images."""
    difference_BP = logits_BP.sigmoid().log1p() - log_target_BP
    return (difference_BP.square().mean(1) + _TINY).sqrt().mean()


def mse(logits_BP: Tensor, target_BP: Tensor) -> Tensor:
    """Mean squared difference."""
    return F.mse_loss(logits_BP.sigmoid(), target_BP)


def bce(logits_BP: Tensor, target_BP: Tensor) -> Tensor:
    """Cross-entropy against the teacher's uncertainty as if it were a chance."""
    return F.binary_cross_entropy_with_logits(logits_BP, target_BP)


def _rmsle_slope(logits_BP: Tensor, log_target_BP: Tensor) -> tuple[Tensor, Tensor]:
    B, P = logits_BP.shape
    s_BP = logits_BP.sigmoid()
    difference_BP = s_BP.log1p().sub_(log_target_BP)
    root_B = (difference_BP.square().mean(1) + _TINY).sqrt()
    # of log(1 + s): s (1 - s) / (1 + s)
    slope_BP = torch.addcmul(s_BP, s_BP, s_BP, value=-1).div_(s_BP.add_(1))
    return root_B.mean(), slope_BP.mul_(difference_BP).div_(B * P * root_B[:, None])


def _mse_slope(logits_BP: Tensor, target_BP: Tensor) -> tuple[Tensor, Tensor]:
    s_BP = logits_BP.sigmoid()
    difference_BP = s_BP - target_BP
    slope_BP = torch.addcmul(s_BP, s_BP, s_BP, value=-1).mul_(difference_BP).mul_(2 / logits_BP.numel())
    return difference_BP.square().mean(), slope_BP


def _bce_slope(logits_BP: Tensor, target_BP: Tensor) -> tuple[Tensor, Tensor]:
    slope_BP = (logits_BP.sigmoid() - target_BP).div_(logits_BP.numel())
    return bce(logits_BP, target_BP), slope_BP


def _as_it_is(target_BP: Tensor) -> Tensor:
    return target_BP


class Loss(NamedTuple):
    """One loss, both ways."""

    prepare: Callable[[Tensor], Tensor]
    """The teacher's uncertainty as the other two take it."""
    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    """Its value and its slope."""


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "rmsle": Loss(torch.log1p, rmsle, _rmsle_slope),
        "mse": Loss(_as_it_is, mse, _mse_slope),
        "bce": Loss(_as_it_is, bce, _bce_slope),
    }
)

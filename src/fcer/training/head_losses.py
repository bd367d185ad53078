"""Losses between a student's uncertainty, as logits, and its teacher's, for the images of a batch (B, P pixels).

Each has its value, for torch to differentiate, and its slope written out: the derivative by each pixel's logit. Both
take the teacher's uncertainty prepared: what depends on it alone is computed once, not in every epoch. Slopes are
computed in memory that is used again and again: fresh memory would cost more than all of the arithmetic.
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
    """Root of the mean squared difference of log(1 + uncertainty) over an image's pixels; mean over images.

    So the paper's formula has it. Code that takes one root over all pixels of a batch, as the paper's does, makes what
    a sample teaches depend on the samples that it was drawn with.
    """
    difference_BP = logits_BP.sigmoid().log1p() - log_target_BP
    return (difference_BP.square().mean(1) + _TINY).sqrt().mean()


def mse(logits_BP: Tensor, target_BP: Tensor) -> Tensor:
    """Mean squared difference."""
    return F.mse_loss(logits_BP.sigmoid(), target_BP)


def bce(logits_BP: Tensor, target_BP: Tensor) -> Tensor:
    """Cross-entropy against the teacher's uncertainty as if it were a chance."""
    return F.binary_cross_entropy_with_logits(logits_BP, target_BP)


def _rmsle_slope(logits_BP: Tensor, log_target_BP: Tensor, room_2BP: Tensor) -> Tensor:
    s_BP, difference_BP = room_2BP
    torch.sigmoid(logits_BP, out=s_BP)
    torch.log1p(s_BP, out=difference_BP).sub_(log_target_BP)
    B, P = logits_BP.shape
    root_B: Tensor = (torch.linalg.vector_norm(difference_BP, dim=1).square() / P + _TINY).sqrt()
    # of log(1 + s): s (1 - s) / (1 + s)
    torch.addcmul(s_BP, s_BP, s_BP, value=-1, out=logits_BP).div_(s_BP.add_(1))
    logits_BP.mul_(difference_BP).div_(B * P * root_B[:, None])
    return root_B.mean()


def _mse_slope(logits_BP: Tensor, target_BP: Tensor, room_2BP: Tensor) -> Tensor:
    s_BP, difference_BP = room_2BP
    torch.sigmoid(logits_BP, out=s_BP)
    torch.sub(s_BP, target_BP, out=difference_BP)
    torch.addcmul(s_BP, s_BP, s_BP, value=-1, out=logits_BP)
    logits_BP.mul_(difference_BP).mul_(2 / logits_BP.numel())
    squares: Tensor = torch.linalg.vector_norm(difference_BP).square()
    return squares / logits_BP.numel()


def _bce_slope(logits_BP: Tensor, target_BP: Tensor, _room_2BP: Tensor) -> Tensor:
    value = bce(logits_BP, target_BP)
    logits_BP.sigmoid_().sub_(target_BP).div_(logits_BP.numel())
    return value


def _as_it_is(target_BP: Tensor) -> Tensor:
    return target_BP


class Loss(NamedTuple):
    """One loss, both ways."""

    prepare: Callable[[Tensor], Tensor]
    """The teacher's uncertainty as the other two take it."""
    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor, Tensor], Tensor]
    """Puts the slope in the logits' place and returns the value; the third tensor is room for two such maps."""


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "rmsle": Loss(torch.log1p, rmsle, _rmsle_slope),
        "mse": Loss(_as_it_is, mse, _mse_slope),
        "bce": Loss(_as_it_is, bce, _bce_slope),
    }
)

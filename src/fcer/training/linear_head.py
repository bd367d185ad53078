"""One step of the paper's head, a linear map, with its gradient written out: several times faster than autograd's.

Shape suffixes: N samples, B samples of a batch, P pixels of an image, F features.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.training.feature_shards import CachedSplit
from fcer.training.head_losses import Loss

__all__ = ["BatchRoom", "set_linear_gradients"]


class BatchRoom:
    """Memory for one batch, used again and again: fresh memory would cost more than the arithmetic."""

    def __init__(self, split: CachedSplit, spec: HeadSpec, batch_size: int) -> None:
        B, P = batch_size, split.pixels
        self._spec = spec
        self._inputs_BFP = torch.empty(B, len(spec.rows), P)
        self._target_BP = torch.empty(B, P)
        self._maps_3BP = torch.empty(3, B, P)

    def gather(self, split: CachedSplit, targets_NP: Tensor, batch: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """The head's inputs, and what it is to say."""
        target_BP = self._target_BP[: len(batch)]
        torch.index_select(targets_NP, 0, torch.tensor(batch), out=target_BP)
        return split.gather(batch, self._spec, self._inputs_BFP), target_BP

    def maps(self, samples: int) -> tuple[Tensor, Tensor]:
        """One map for each sample, and two more."""
        return self._maps_3BP[0, :samples], self._maps_3BP[1:, :samples]


@torch.no_grad()
def set_linear_gradients(
    head: UncertaintyHead, loss: Loss, inputs: Sequence[Tensor], target_BP: Tensor, room: BatchRoom
) -> Tensor:
    """Set the gradients of the paper's head, a linear map, by two products an image; the loss."""
    layer = cast(nn.Conv2d, head.layers[0])
    value, slope_BP = _linear_loss(layer, loss, inputs, target_BP, room)
    gradient_F = torch.zeros(len(inputs[0]))
    for inputs_FP, slope_P in zip(inputs, slope_BP, strict=True):
        gradient_F.addmv_(inputs_FP, slope_P)
    layer.weight.grad = gradient_F.view_as(layer.weight)
    layer.bias.grad = slope_BP.sum()[None]  # type: ignore[union-attr]  # there is one
    return value


def _linear_loss(
    layer: nn.Conv2d, loss: Loss, inputs: Sequence[Tensor], target_BP: Tensor, room: BatchRoom
) -> tuple[Tensor, Tensor]:
    """Loss and slope, image by image: torch's products of whole batches are slower with one output."""
    logits_BP, more_2BP = room.maps(len(inputs))
    weight_F = layer.weight.detach().flatten()
    for inputs_FP, logits_P in zip(inputs, logits_BP, strict=True):
        torch.mv(inputs_FP.t(), weight_F, out=logits_P)
    logits_BP.add_(layer.bias.detach())  # type: ignore[union-attr]  # there is one
    return loss.slope(logits_BP, target_BP, more_2BP), logits_BP

"""Fast prediction with a backbone: for images of any size, logits and decoder features in one pass.

Shape suffixes: B samples, T days, C channels, H height, W width, F features of the decoder's last map.
"""

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from fcer.models.backbones import STRIDE, Backbone, UNetBackbone

__all__ = ["Prediction", "fast", "pad_to_stride", "padded", "predict", "predict_logits"]


class Prediction(NamedTuple):
    """What one pass through a backbone gives."""

    logits_B1HW: Tensor
    features_BFHW: Tensor


def fast(backbone: Backbone) -> Backbone:
    """A copy of `backbone` for prediction only; the original stays as it is.

    Batch norm, a fixed scale and shift in eval mode, moves into the layer before it, and weights lie channels
    last, which every map after them follows. Both change the result by rounding alone. The copy's state dict
    no longer has the released keys: keep the original for saving. Of another package's backbone nobody knows
    which layer a batch norm follows, so that they stay.
    """
    copied = copy.deepcopy(backbone).eval().requires_grad_(False)
    for module in list(copied.modules()) if isinstance(copied, UNetBackbone) else []:
        _fold_batch_norm(module)
    copied.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
    return copied


def _fold_batch_norm(parent: nn.Module) -> None:
    """Fold each batch norm among the children into the child before it, which is the layer it follows."""
    before = ""
    for name, child in list(parent.named_children()):
        if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d):
            layer = getattr(parent, before)
            fold = fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fuse_conv_bn_eval
            setattr(parent, before, fold(layer, child))
            setattr(parent, name, nn.Identity())
        before = name


@torch.inference_mode()
def predict(backbone: Backbone, x_BTCHW: Tensor) -> Prediction:
    """Logits (B, 1, H, W) and the decoder's last feature map (B, F, H, W) for images of any size."""
    H, W = x_BTCHW.shape[-2:]
    features_BFHW = backbone.features(padded(backbone, x_BTCHW))
    logits_B1HW = backbone.fire_logits(features_BFHW)
    image = ..., slice(backbone.margin, backbone.margin + H), slice(backbone.margin, backbone.margin + W)
    return Prediction(logits_B1HW[image], features_BFHW[image])


def padded(backbone: Backbone, x_BTCHW: Tensor) -> Tensor:
    """Images of any size where the backbone is, padded to a multiple of 32: results are to be cropped back.

    The padding repeats the edge's pixels. With zeros, backbones take the seam for a fire's edge: on the demo's whole
    images a student's AP was 0.10 with them, all along the seam it saw fire, and 0.21 without. The backbone's margin
    goes on every side, since convolutions pad each of their maps with zeros: members disagree about those, and without
    a margin the largest uncertainty of 67 in 162 maps of real fires lay within 3 px of the rim, which is 9 % of the
    image, with 16 px in 5 of them, and AP rose in every group. The rest goes to the bottom and the right.
    """
    if backbone.training:
        raise ValueError("predicting needs a backbone in eval mode: call .eval() on it, or use fast(backbone)")
    return pad_to_stride(x_BTCHW.to(next(backbone.parameters())), backbone.margin)


def pad_to_stride(x_BTCHW: Tensor, m: int = 0) -> Tensor:
    """Images grown by a margin, and then to a multiple of 32, by their edge's pixels."""
    H, W = x_BTCHW.shape[-2:]
    right, bottom = (m + -(side + 2 * m) % STRIDE for side in (W, H))
    if not (m or right or bottom):
        return x_BTCHW
    grown = F.pad(x_BTCHW.flatten(0, 1), (m, right, m, bottom), mode="replicate")
    return grown.reshape(*x_BTCHW.shape[:2], *grown.shape[1:])


def predict_logits(backbone: Backbone, x_BTCHW: Tensor) -> Tensor:
    """The logits of `predict` alone."""
    return predict(backbone, x_BTCHW).logits_B1HW

"""Test-time augmentation (Wang et al. 2019): the input turned and mirrored, one pass each, the results turned back."""

import numpy as np

from fcer.data.augmentation import View, angle_positions, turn
from fcer.models.ensemble import standardise
from fcer.models.inference import predict_logits
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import method
from fcer.uncertainty.several_maps import SeveralMaps

__all__ = ["TURNS", "TestTimeAugmentation"]

TURNS = tuple(View(0, 0, mirrored, False, quarters) for mirrored in (False, True) for quarters in range(4))
"""The eight ways to lay a square on itself; an image that is longer than wide lies across in half of them."""


@method("tta")
class TestTimeAugmentation(SeveralMaps):
    """Mean and normalised standard deviation over the eight views."""

    def maps(self, seen: SeenBatch) -> FloatMaps:
        """Of the eight views, turned back."""
        return _passes(seen)

    def passes(self, predictors: Predictors) -> int:  # noqa: ARG002
        """One for each view."""
        return len(TURNS)


def _passes(seen: SeenBatch) -> FloatMaps:
    """Probabilities (views, B, H, W), turned back; angles are turned along."""
    backbone, normalization = seen.predictors.alone
    angles = angle_positions(seen.samples.channels)
    passes = []
    for view in TURNS:
        turned = [(turn(raw, view, angles), y) for raw, y in seen.read]
        x_BTCHW = standardise(turned, seen.samples, normalization)
        prob_BHW = predict_logits(backbone, x_BTCHW)[:, 0].sigmoid().cpu().numpy()
        back_BHW = np.rot90(prob_BHW, -view.quarter_turns, axes=(-2, -1))
        passes.append(back_BHW[..., ::-1] if view.mirrored else back_BHW)
    return np.stack(passes)

"""A student as one graph from raw days to maps, for runtimes without torch: standardising and calibration are inside.

So is the padding by repeated edges, the backbone's margin and on to a multiple of 32: images have any size.

Shape suffixes: B samples, T days, C channels, H height, W width, F features of the decoder's last map.
"""

import math
import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fcer.core.recalibration import Recalibration
from fcer.data.channels import ACTIVE_FIRE, ANGLES, CHANNELS, FIRE_MASK, LAND_COVER, LAND_COVER_CLASSES, raw_channel
from fcer.models.backbones import STRIDE
from fcer.models.calibration_files import Calibration
from fcer.models.inference import pad_to_stride
from fcer.models.student_files import LoadedStudent

__all__ = ["OPSET", "StudentGraph", "write_graph"]

OPSET = 18
"""Of the ONNX operators that are used: every runtime since 2023 has it."""


class StudentGraph(nn.Module):
    """Raw days (B, T, 23, H, W) in; out come `outputs`, each (B, H, W) float32."""

    def __init__(self, loaded: LoadedStudent, calibration: Calibration | None) -> None:
        super().__init__()
        self.backbone, self.head = loaded.student.backbone, loaded.student.head
        self.fire_channel = loaded.student.fire_channel
        self.features = loaded.backbone.features
        self.mean, self.std = loaded.normalization.arrays(range(ACTIVE_FIRE + 1))
        self.calibration = calibration

    @property
    def outputs(self) -> list[str]:
        """Names of the maps, in order: those that a served student answers with."""
        return ["probability", "uncertainty", *(["calibrated_probability", "zone"] if self.calibration else [])]

    def forward(self, days_BTCHW: Tensor) -> tuple[Tensor, ...]:
        """The maps."""
        x_BTCHW = self._standardised(days_BTCHW)
        H, W = x_BTCHW.shape[-2:]
        m = self.backbone.margin
        features_BFHW = self.backbone.features(pad_to_stride(x_BTCHW, m))
        logits_B1HW = self.backbone.fire_logits(features_BFHW)
        image = ..., slice(m, m + H), slice(m, m + W)
        logits_BHW = logits_B1HW[image][:, 0]
        today_BHW = None if self.fire_channel is None else x_BTCHW[:, -1, self.fire_channel]
        uncertainty_BHW = self.head(features_BFHW[image], logits_BHW, today_BHW).sigmoid()
        probability_BHW = logits_BHW.sigmoid()
        return probability_BHW, uncertainty_BHW, *self._calibrated(probability_BHW)

    def _standardised(self, days_BTCHW: Tensor) -> Tensor:
        """As `fcer.data.samples.preprocess` does it in numpy."""
        seen = []
        for feature in self.features:
            channel = raw_channel(feature)
            values = days_BTCHW[:, :, channel]
            if feature == FIRE_MASK:
                seen.append(((values > 0) & values.isfinite()).float())
            elif channel == LAND_COVER:
                classes = values.floor()
                known = (classes >= 1) & (classes <= LAND_COVER_CLASSES)
                classes = torch.where(known, classes, float(LAND_COVER_CLASSES))
                seen.append((classes == feature - LAND_COVER + 1).float())
            else:
                values = (values * (math.pi / 180)).sin() if channel in ANGLES else values
                values = (values - float(self.mean[channel, 0, 0])) / float(self.std[channel, 0, 0])
                seen.append(torch.where(values.isfinite(), values, 0.0))
        return torch.stack(seen, dim=2)

    def _calibrated(self, probability_BHW: Tensor) -> tuple[Tensor, ...]:
        """Calibrated probability, and the expected miss of the smallest zone around each pixel; in double precision."""
        if self.calibration is None:
            return ()
        p_BHW = probability_BHW.double()
        score_BHW = _recalibrated(self.calibration.zone_prior, p_BHW)
        zone_BHW = torch.zeros_like(probability_BHW)
        for rule in self.calibration.rules_of("threshold"):
            zone_BHW = torch.where(score_BHW >= rule.level, rule.miss, zone_BHW)
        return _recalibrated(self.calibration.recalibration, p_BHW).float(), zone_BHW


def _recalibrated(recalibration: Recalibration, p: Tensor) -> Tensor:
    """As `Recalibration.apply` does it in numpy."""
    if recalibration.kind == "prior":
        return p / (p + recalibration.weight * (1 - p))
    if recalibration.kind == "platt":
        return (recalibration.scale * (p / (1 - p)).log() + recalibration.shift).sigmoid()
    return _interpolated(np.array(recalibration.knots), p) if recalibration.knots else p


def _interpolated(knots: NDArray[np.float64], p: Tensor) -> Tensor:
    """Straight lines between knots, found by bisection: ONNX has no operator that looks values up."""
    x, y = knots.T
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.append(np.diff(y) / np.diff(x), 0.0)
    steps = 2 ** np.arange(int(np.log2(len(x))), -1, -1)
    edges = torch.from_numpy(np.append(x, np.full(2 * steps[0], np.inf)))
    below = torch.zeros_like(p, dtype=torch.int64)
    for step in steps.tolist():
        below = torch.where(p >= edges[below + step], below + step, below)
    return torch.from_numpy(y)[below] + torch.from_numpy(slope)[below] * (p - torch.from_numpy(x)[below])


def write_graph(graph: StudentGraph, path: Path) -> None:
    """The graph as an ONNX file, for any number of samples, rows and columns.

    Torch's older exporter, which records one pass: the newer one proves what the graph does with every size, which took
    it half a minute and more, and needs two packages besides. What was recorded is held to other sizes afterwards
    (`fcer.deploy.onnx_file`).
    """
    # One that needs padding on both axes, so that padding is recorded
    example = torch.zeros(2, graph.backbone.days, len(CHANNELS), STRIDE + 1, STRIDE + 2)
    free = {name: {0: "samples", 1: "rows", 2: "columns"} for name in graph.outputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the exporter is the older one, that recorded factors stay as they are
        torch.onnx.export(
            graph.eval(),
            (example,),
            path,
            input_names=["days"],
            output_names=graph.outputs,
            opset_version=OPSET,
            dynamic_axes={"days": {0: "samples", 3: "rows", 4: "columns"}, **free},
            dynamo=False,
        )

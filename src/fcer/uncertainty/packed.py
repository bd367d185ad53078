"""Packed ensembles (Laurent et al. 2023): several small members in one network, one pass for all of them."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from fcer.models.backbones import MARGIN, BackboneSpec
from fcer.models.ensemble import standardise
from fcer.models.inference import pad_to_stride
from fcer.models.packed import PackedBackbone
from fcer.uncertainty.families import check_family, family_facts, read_family
from fcer.uncertainty.predictors import FloatMaps, Predictors, SeenBatch
from fcer.uncertainty.registry import method
from fcer.uncertainty.several_maps import SeveralMaps

__all__ = ["Packed", "load_packed"]


@method("packed")
class Packed(SeveralMaps):
    """Mean and normalised standard deviation over the members of one network."""

    def maps(self, seen: SeenBatch) -> FloatMaps:
        """Of the network's members."""
        return _members(seen)

    def parameters(self, predictors: Predictors) -> int:
        """Those of the one network."""
        return sum(weight.numel() for weight in load_packed(predictors.families["packed"]).parameters())

    def check(self, predictors: Predictors) -> None:
        """It is trained before."""
        check_family("packed", predictors)


@lru_cache(maxsize=2)
def load_packed(path: Path) -> PackedBackbone:
    """The network in a file, ready to predict."""
    facts = family_facts(path)
    spec = BackboneSpec(facts["arch"], int(facts["channels"]), float(facts["width"]))
    network = PackedBackbone(spec, int(facts["members"]))
    network.load_state_dict(read_family(path))
    return network.eval().requires_grad_(False)


@torch.inference_mode()
def _members(seen: SeenBatch) -> FloatMaps:
    """Probabilities (K, B, H, W)."""
    member, network = seen.predictors.backbone, load_packed(seen.predictors.families["packed"])
    x_BTCHW = standardise(seen.read, seen.samples, member.normalization)
    H, W = x_BTCHW.shape[-2:]
    logits_BKHW = network(pad_to_stride(x_BTCHW, MARGIN))[..., MARGIN : MARGIN + H, MARGIN : MARGIN + W]
    return np.asarray(logits_BKHW.sigmoid().transpose(0, 1))

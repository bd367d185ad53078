"""Backbones by the shapes of their weights: which shapes one has, and which ones fit those of a file."""

from collections.abc import Mapping
from functools import lru_cache

from fcer.models.backbones import ARCHITECTURES, STAGES, AttendedDays, BackboneSpec, architecture, blank

__all__ = ["candidates", "state_shapes"]


def state_shapes(spec: BackboneSpec) -> dict[str, tuple[int, ...]]:
    """Every key and shape of the backbone's state dict."""
    return dict(_shapes(spec, architecture(spec.arch).kind))


@lru_cache
def _shapes(spec: BackboneSpec, _: type) -> dict[str, tuple[int, ...]]:
    """Asked for at every checkpoint that is read or written; a name may come to stand for another class."""
    return {key: tuple(value.shape) for key, value in blank(spec).state_dict().items()}


def candidates(shapes: Mapping[str, tuple[int, ...]]) -> list[BackboneSpec]:
    """The backbones whose first and deepest layers have these shapes.

    Mostly one. The weights cannot tell stacked days from channels, so that a U-Net on 35 channels is both
    `unet_t5` on 7 and `unet_t1` on 35; none where the weights are not those of a backbone at all.
    """
    first = shapes.get("model.encoder.conv1.weight", ())
    deepest = shapes.get("model.encoder.layer4.1.conv2.weight", ())
    if len(first) != 4 or len(deepest) != 4:
        return []
    attends = any(key.startswith("ltae.") for key in shapes)
    found = []
    for facts in ARCHITECTURES.values():
        if not facts.is_unet:
            continue
        by_day = issubclass(facts.kind, AttendedDays)
        stacked = 1 if by_day else facts.days
        if by_day == attends and first[1] % stacked == 0:
            found.append(BackboneSpec(facts.name, first[1] // stacked, deepest[0] / STAGES[-1]))
    return found

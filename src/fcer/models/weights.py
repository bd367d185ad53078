"""From named weights to a backbone: which one they belong to, and whether they are all there."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from fcer.errors import CheckpointError
from fcer.models.backbones import ARCHITECTURES, Backbone, BackboneSpec, architecture, blank
from fcer.models.weight_shapes import candidates, state_shapes

__all__ = ["backbone_from_weights", "unreadable"]

_USUAL_CHANNELS = BackboneSpec.channels  # the paper's vegetation set


def backbone_from_weights(
    weights: Mapping[str, Tensor],
    path: Path,
    arch: str | None = None,
    channels: int | None = None,
    width: float = 1.0,
) -> Backbone:
    """The backbone that `weights` belong to, with them, in eval mode.

    Parameters
    ----------
    weights
        A state dict with the released keys, and no others.
    path
        The file they came from, for messages.
    arch
        The architecture they must have; read off the weights where not given.
    channels
        The channels of one day they must have; likewise.
    width
        Of another package's backbone, whose weights do not tell it.
    """
    shapes = {key: tuple(value.shape) for key, value in weights.items()}
    if arch is not None and not architecture(arch).is_unet:
        spec = BackboneSpec(arch, channels or _USUAL_CHANNELS, width)
    else:
        spec = _identify(shapes, path, arch, channels)
    _check_shapes(shapes, path, spec)
    broken = [key for key, value in weights.items() if not bool(torch.isfinite(value).all())]
    if broken:
        raise CheckpointError(f"{path}: {_named(broken)} not finite; the file is damaged, fetch or train it again")
    backbone = blank(spec)
    if any(value.is_meta for value in backbone.state_dict().values()):
        backbone.to_empty(device="cpu")
    backbone.load_state_dict(weights, strict=True)
    return backbone.eval()


def unreadable(path: Path, error: OSError) -> CheckpointError:
    """The error to raise for a file that the system would not open."""
    reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
    return CheckpointError(f"{path}: {reason}; check the path")


def _identify(
    shapes: Mapping[str, tuple[int, ...]], path: Path, arch: str | None, channels: int | None
) -> BackboneSpec:
    found = candidates(shapes)
    if not found:
        raise CheckpointError(
            f"{path}: none of its {len(shapes)} entries is the encoder of a backbone; "
            f"give a checkpoint of {arch or ' or '.join(ARCHITECTURES)}"
        )
    fitting = [s for s in found if arch in (None, s.arch) and channels in (None, s.channels)]
    if len(fitting) > 1:
        fitting = [s for s in fitting if s.channels == _USUAL_CHANNELS]
        if not fitting:
            raise CheckpointError(f"{path}: its weights fit {_described(found)} alike; say which with arch")
    if not fitting:
        wanted = f"{arch or 'a backbone'}{'' if channels is None else f' on {channels} channels a day'}"
        folder = "" if arch is None else f" (released ones lie in {architecture(arch).released_folder})"
        raise CheckpointError(
            f"{path}: it holds the weights of {_described(found)}, not of {wanted}; "
            f"choose what the file holds, or give a checkpoint of {wanted}{folder}"
        )
    return fitting[0]


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], path: Path, spec: BackboneSpec) -> None:
    expected = state_shapes(spec)
    problems = {
        "missing": sorted(expected.keys() - shapes.keys()),
        "unexpected": sorted(shapes.keys() - expected.keys()),
        "of another shape": sorted(key for key in expected.keys() & shapes.keys() if expected[key] != shapes[key]),
    }
    found = "; ".join(f"{_named(keys)} {problem}" for problem, keys in problems.items() if keys)
    if found:
        raise CheckpointError(
            f"{path}: its weights look like those of {_described([spec])}, but {found}; "
            "fetch the file again, or give one that holds this backbone alone"
        )


def _described(specs: Sequence[BackboneSpec]) -> str:
    return " or ".join(
        f"{s.arch} on {s.channels} channels a day" + ("" if s.width == 1 else f" at width {s.width:g}") for s in specs
    )


def _named(keys: Sequence[str]) -> str:
    """The first few keys and the verb that follows them."""
    rest = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return f"{', '.join(keys[:3])}{rest} {'is' if len(keys) == 1 else 'are'}"

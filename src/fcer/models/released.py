"""The released checkpoints: raw state dicts, twelve folds in a folder per architecture.

`ROOT/Res18UTAE_T5/Veg/fold3_testAP0.512.pth` holds the weights of `utae_t5` on the vegetation channels of
fold 3, whose test AP is in the name.
"""

import math
import pickle
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from fcer.data.folds import WSTS
from fcer.errors import CheckpointError
from fcer.models.backbones import ARCHITECTURES, Architecture, Backbone, architecture
from fcer.models.weights import backbone_from_weights, unreadable

__all__ = ["ReleasedFold", "find_released", "load_released", "read_released"]

_NAME = re.compile(r"fold(\d+)_testAP([01]\.\d+)\.pth")
_POS_WEIGHT = "loss.pos_weight"  # released files carry it beside the weights


@dataclass(frozen=True)
class ReleasedFold:
    """One fold's released checkpoint."""

    fold: int
    path: Path
    test_ap: float
    """AP on the fold's test year, as the file's name says."""


def find_released(
    root: Path, arch: str, folds: Collection[int] | None = None, features: str = "Veg"
) -> dict[int, ReleasedFold]:
    """The released checkpoints of `arch` under `root`, by fold.

    Parameters
    ----------
    root
        The folder above `Res18UTAE_T5`, that folder, or one that holds the fold files.
    arch
        Whose checkpoints.
    folds
        One for each member, which must be there and alone are returned; all that there are where not given.
    features
        The subfolder of the channels that the weights were trained on.
    """
    folder = _folder(root, architecture(arch), features)
    found: dict[int, ReleasedFold] = {}
    for path in _weight_files(folder):
        fold = _parse_name(path)
        if fold.fold in found:
            raise CheckpointError(
                f"{folder}: fold {fold.fold} is there twice, as {found[fold.fold].path.name} and {path.name}; "
                "keep one of them"
            )
        found[fold.fold] = fold
    if folds is None:
        return dict(sorted(found.items()))
    if len(folds) > (most := len(set(folds))):
        use = f"give --members {most}" if most > 1 else "choose --split wsts"
        raise CheckpointError(
            f"{folder}: released checkpoints have one file a fold, {most} for this test year, fewer than --members "
            f"{len(folds)}; {use}, or leave --checkpoints out and members are trained"
        )
    missing = sorted(set(folds) - found.keys())
    if missing:
        raise CheckpointError(
            f"{folder}: no checkpoint of fold {_listed(missing)}, only of fold {_listed(sorted(found))}; "
            "add foldN_testAP0.xxx.pth for each, or choose another test year"
        )
    return {fold: found[fold] for fold in sorted(set(folds))}


def load_released(path: Path, arch: str | None = None, channels: int | None = None) -> Backbone:
    """The backbone that `read_released` finds."""
    return read_released(path, arch, channels)[0]


def read_released(path: Path, arch: str | None = None, channels: int | None = None) -> tuple[Backbone, float | None]:
    """The backbone in a raw `.pth` file, in eval mode, and the weight of burning pixels in its training.

    Nothing but tensors is read from the file. The weight is None where the file does not say it.

    Parameters
    ----------
    path
        A state dict, or a Lightning checkpoint around one.
    arch
        The architecture it must have; read off the weights where not given.
    channels
        The channels of one day it must have; likewise.
    """
    content = _read_tensors(path)
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in content.items()
    ):
        raise CheckpointError(f"{path}: it is no state dict; save one with torch.save(model.state_dict(), ...)")
    weights = {key: value for key, value in content.items() if key != _POS_WEIGHT}
    return backbone_from_weights(weights, path, arch, channels), _pos_weight(content)


def _pos_weight(content: dict[str, Tensor]) -> float | None:
    value = content.get(_POS_WEIGHT)
    if value is None or value.numel() != 1 or not 0 < float(value) < math.inf:
        return None
    return float(value)


def _read_tensors(path: Path) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of unusual pickles that it then refuses
            return cast(object, torch.load(path, map_location="cpu", weights_only=True))
    except OSError as error:
        raise unreadable(path, error) from None
    except Exception as error:
        # torch's reader answers damage with whatever its parser trips over, from EOFError to KeyError
        if isinstance(error, pickle.UnpicklingError) and _is_torch_file(path):
            raise CheckpointError(
                f"{path}: refused, since it holds code or objects beside tensors; "
                "where you trust its source, save its state_dict alone with torch.save"
            ) from None
        raise CheckpointError(f"{path}: not a readable torch file, or cut short; fetch it again") from None


def _is_torch_file(path: Path) -> bool:
    """Whether it begins like a zip archive or a pickle, torch's two formats."""
    with path.open("rb") as file:
        return file.read(2) in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def _folder(root: Path, facts: Architecture, features: str) -> Path:
    """The folder with the fold files, most specific first."""
    named = root / facts.released_folder
    for folder in (named / features, named, root / features, root):
        if folder.is_dir() and _weight_files(folder):
            return folder
    present = [f.released_folder for f in ARCHITECTURES.values() if (root / f.released_folder).is_dir()]
    seen = f"though there is {', '.join(present)}" if present else "nor a released folder of another backbone"
    raise CheckpointError(
        f"{root}: no released checkpoints of {facts.name}, {seen}; "
        f"put foldN_testAP0.xxx.pth files into {named / features}"
    )


def _listed(folds: list[int]) -> str:
    return ", ".join(map(str, folds))


def _weight_files(folder: Path) -> list[Path]:
    # a name that starts with a dot is a download or a copy that is not finished
    return sorted(path for path in folder.glob("*.pth") if not path.name.startswith("."))


def _parse_name(path: Path) -> ReleasedFold:
    match = _NAME.fullmatch(path.name)
    if match is None or int(match[1]) >= len(WSTS) or float(match[2]) > 1:
        raise CheckpointError(
            f"{path}: released checkpoints are called foldN_testAP0.xxx.pth, N from 0 to {len(WSTS) - 1}; "
            "rename it, or move it elsewhere"
        )
    return ReleasedFold(int(match[1]), path, float(match[2]))

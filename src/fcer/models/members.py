"""An ensemble's members: released or our own checkpoints, each with the statistics it was trained with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fcer.data.folds import WSTS_PLUS, Fold, Slot, slots_of
from fcer.data.normalization import Normalization, released
from fcer.errors import CheckpointError
from fcer.models.backbones import Backbone
from fcer.models.checkpoints import CheckpointInfo, content_hash, load_checkpoint
from fcer.models.inference import fast
from fcer.models.released import find_released, load_released, read_released

__all__ = ["Member", "fold_file", "load_members"]


@dataclass(frozen=True)
class Member:
    """One trained backbone, ready to predict."""

    slot: Slot
    path: Path
    digest: str
    """Of the checkpoint's content, when it was read."""
    backbone: Backbone
    """For prediction only: batch norm folded, weights channels last."""
    normalization: Normalization
    val_ap: float | None
    """As the checkpoint says; None where it does not."""
    file_ap: float | None
    """Test AP in a released file's name, by which the paper chose its backbones."""

    features: tuple[int, ...]
    """What it sees of a day: indices among the channels after preprocessing."""
    pos_weight: float | None
    """Weight of a burning pixel in its training; none where the checkpoint does not say."""
    apart: bool = False
    """As in its `CheckpointInfo`."""

    @property
    def fold(self) -> Fold:
        """Which years it was trained, validated and is tested on."""
        return self.slot.fold

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes a member travels as the place of its checkpoint: weights are large, and on disk."""
        arch, file = self.backbone.spec.arch, (self.path, self.digest)
        return _reopened, (arch, file, self.slot, self.features, self.file_ap)

    def original(self) -> tuple[Backbone, CheckpointInfo]:
        """The backbone as it lies in the file, and what the file says of it or a released one stands for."""
        if self.path.suffix == ".safetensors":
            return load_checkpoint(self.path)
        backbone = load_released(self.path, self.backbone.spec.arch, len(self.features))
        info = CheckpointInfo(
            arch=backbone.spec.arch,
            channels=backbone.spec.channels,
            width=backbone.spec.width,
            fold=self.fold.number,
            train_years=self.fold.train,
            val_years=self.fold.validation,
            test_years=self.fold.test,
            features=self.features,
            mean=self.normalization.mean,
            std=self.normalization.std,
            val_ap=None,
            dataset_fingerprint="released",
            code_version="released",
            pos_weight=self.pos_weight,
        )
        return backbone, info


def fold_file(folder: Path, label: int | str) -> Path:
    """Where our own checkpoint lies, by its fold's number or its slot's label."""
    return folder / f"fold{label}.safetensors"


def load_members(folder: Path, arch: str, folds: Sequence[Fold], features: Sequence[int]) -> list[Member]:
    """The members of `folds` from our own checkpoints in `folder`, or else from the released layout.

    A fold that is there again stands for another member, trained on it with another seed.
    """
    slots = slots_of(folds)
    if any(folder.glob("fold*.safetensors")):
        for slot in slots:
            if not fold_file(folder, slot.label).exists():
                raise _missing(folder, slot, len(slots))
        return [_own(fold_file(folder, slot.label), arch, slot, features) for slot in slots]
    # The released layout says nothing of channels: the weights must fit the number of those asked for
    files = find_released(folder, arch, [fold.number for fold in folds])
    found = [(slot, files[slot.fold.number]) for slot in slots]
    return [_released(file.path, arch, slot, features, file.test_ap) for slot, file in found]


@lru_cache(maxsize=16)
def _reopened(
    arch: str, file: tuple[Path, str], slot: Slot, features: tuple[int, ...], file_ap: float | None
) -> Member:
    """A member that came from another process, read once here however often it comes."""
    path, digest = file
    if path.suffix == ".safetensors":
        member = _own(path, arch, slot, features)
    else:
        member = _released(path, arch, slot, features, file_ap)
    if member.digest != digest:
        raise CheckpointError(f"{path}: it has changed since the command began; start the same command again")
    return member


def _released(path: Path, arch: str, slot: Slot, features: Sequence[int], file_ap: float | None) -> Member:
    backbone, weight = read_released(path, arch, len(features))
    statistics, seen = released(slot.fold.train), tuple(features)
    return Member(slot, path, content_hash(path), fast(backbone), statistics, None, file_ap, seen, weight)


def _missing(folder: Path, slot: Slot, members: int) -> CheckpointError:
    split = " --split wsts_plus" if slot.fold in WSTS_PLUS else ""
    command = f"fcer train --checkpoints {folder}{split} --year {slot.fold.test[0]} --members {members}"
    return CheckpointError(f"{fold_file(folder, slot.label)}: no checkpoint of fold {slot.label}; run {command}")


def _own(path: Path, arch: str, slot: Slot, features: Sequence[int]) -> Member:
    backbone, info = load_checkpoint(path, arch, len(features))
    if info.features != tuple(features):
        raise CheckpointError(
            f"{path}: trained on the features {list(info.features)}, not {list(features)}; give --features the same"
        )
    if seen := sorted(set(slot.fold.test) & {*info.train_years, *info.val_years}):
        raise CheckpointError(f"{path}: it has seen the test year {seen[0]} in training; train it again")
    if not set(slot.fold.test) <= set(info.test_years):
        own, asked = (", ".join(map(str, years)) for years in (info.test_years, slot.fold.test))
        raise CheckpointError(
            f"{path}: a member for the test year {own}, not {asked}; name the --split and --year that it was trained "
            "for, or another --checkpoints"
        )
    normalization = Normalization(info.mean, info.std, f"of {path.name}")
    said: Any = {name: getattr(info, name) for name in ("val_ap", "features", "pos_weight", "apart")}
    return Member(slot, path, content_hash(path), fast(backbone), normalization, file_ap=None, **said)

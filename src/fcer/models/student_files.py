"""A student on disk: a folder with its backbone and its head, each a safetensors file that says what it is.

The folder is all that predicting needs. `head.safetensors` is written last: where it is, the student is complete.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.data.channels import fire_channel
from fcer.data.normalization import Normalization
from fcer.errors import CheckpointError
from fcer.models.backbones import Backbone
from fcer.models.checkpoints import CheckpointInfo, content_hash, load_checkpoint, save_checkpoint
from fcer.models.headers import check_bytes, opened, parse_header, save_sealed
from fcer.models.inference import fast
from fcer.models.precision import FP32
from fcer.models.student import HeadSpec, Student, UncertaintyHead
from fcer.runtime.sealed_text import read_sealed_json

__all__ = [
    "HeadInfo",
    "LoadedStudent",
    "backbone_file",
    "fire_scores_file",
    "head_file",
    "load_student",
    "read_fire_scores",
    "read_head_info",
    "save_student",
]


@dataclass(frozen=True)
class HeadInfo:
    """What a head is and where it comes from."""

    features: int
    hidden: tuple[int, ...]
    logit: bool
    loss: str
    target: str
    """Which disagreement of the teacher it was taught."""
    frozen: bool
    """Whether the backbone is that of an ensemble's member, untouched; else it was trained along."""
    anchor_px: float
    """Radius of the region in which the best epoch was chosen."""
    val_auroc: float
    """In that region of the validation years, at that epoch."""
    epoch: int
    """The one whose weights these are."""
    backbone: str
    """Hash of the backbone's checkpoint beside it."""
    teachers: tuple[str, ...]
    """Hashes of the checkpoints that taught it."""
    dataset_fingerprint: str
    code_version: str
    key: str
    """Stands for all that decided the weights."""
    val_auroc_low: float | None = None
    """Lower end of the 95 % interval of `val_auroc` over draws of fires; none: an older version did not ask."""
    val_auroc_high: float | None = None
    val_fires: int | None = None
    """Fires of the validation years that have pixels in that region; of one alone both ends are `val_auroc`."""
    val_auroc_within: float | None = None
    """The same among pixels that the backbone predicted alike; none: undefined, or an older version did not ask."""
    val_nll: float | None = None
    """Mean negative log-likelihood of the backbone's probability in that region."""
    val_years: tuple[int, ...] = ()
    context: bool = False
    """Whether it sees the backbone's mean probability around each pixel."""
    fire: bool = False
    """Whether it sees today's fire."""
    decoder: bool = True
    """Whether it sees the decoder's features."""
    threshold: float = FIRE_THRESHOLD
    """Probability above which its backbone's predictions counted as fire where errors were looked for."""

    def __post_init__(self) -> None:
        if self.features < 1 or any(width < 1 for width in self.hidden):
            raise ValueError(f"no head reads {self.features} features through {list(self.hidden)}")
        if not (math.isfinite(self.anchor_px) and 0 <= self.val_auroc <= 1):
            raise ValueError(f"anchor_px {self.anchor_px} or val_auroc {self.val_auroc} is impossible")
        low, high = self.val_auroc_low, self.val_auroc_high
        if (low is None) != (high is None) or not 0 <= (low or 0) <= (1 if high is None else high) <= 1:
            raise ValueError(f"a val_auroc from {low} to {high} is impossible")

    @property
    def scores(self) -> dict[str, float]:
        """What the validation years say of it, by name: all that is known."""
        named = ("val_auroc", "val_auroc_low", "val_auroc_high", "val_fires", "val_auroc_within", "val_nll")
        return {name: float(value) for name in named if (value := getattr(self, name)) is not None}

    @property
    def spec(self) -> HeadSpec:
        """The head's shape."""
        return HeadSpec(self.features, self.hidden, self.logit, self.context, self.fire, self.decoder)


@dataclass(frozen=True)
class LoadedStudent:
    """A student ready to predict, and what its files say of it."""

    student: Student
    normalization: Normalization
    """To standardise its input with."""
    backbone: CheckpointInfo
    head: HeadInfo
    folder: Path
    precision: str = FP32
    """What its backbone computes forecasts with."""

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes a student travels as the place of its files."""
        return load_student, (self.folder, self.precision)


def backbone_file(folder: Path) -> Path:
    """Where a student's backbone lies."""
    return folder / "backbone.safetensors"


def head_file(folder: Path) -> Path:
    """Where a student's head lies."""
    return folder / "head.safetensors"


def fire_scores_file(folder: Path) -> Path:
    """Where a student's validation scores lie, fire by fire."""
    return folder / "validation.json"


def read_fire_scores(folder: Path) -> dict[str, dict[str, float]] | None:
    """{fire: {score: value}}; None where the student has none, a CheckpointError where the file is damaged."""
    path = fire_scores_file(folder)
    if not path.is_file():
        return None
    try:
        content = read_sealed_json(path)
        scores = content.get("fires", content)  # versions before wrote the fires alone
        return {fire: {name: value + 0 for name, value in of.items()} for fire, of in scores.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error}); remove the folder {folder.name}, and the student is distilled again"
        ) from None


def save_student(
    folder: Path, backbone: Backbone, backbone_info: CheckpointInfo, head: UncertaintyHead, head_info: HeadInfo
) -> None:
    """Write both files, the head last; `head_info.backbone` is filled in."""
    save_checkpoint(backbone_file(folder), backbone, backbone_info)
    values = asdict(head_info) | {"backbone": content_hash(backbone_file(folder))}
    weights = {key: value.detach().cpu().contiguous() for key, value in head.state_dict().items()}
    save_sealed(head_file(folder), weights, values)


def load_student(folder: Path, precision: str = FP32) -> LoadedStudent:
    """The student in `folder`, in eval mode and laid out for speed, to compute with this precision."""
    with opened(head_file(folder)) as file:
        info = parse_header(head_file(folder), file.metadata(), HeadInfo, written_by="fcer distill")
        weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
        check_bytes(head_file(folder))
    if content_hash(backbone_file(folder)) != info.backbone:
        raise CheckpointError(f"{backbone_file(folder)}: not the backbone that the head was made for; copy both again")
    backbone, backbone_info = load_checkpoint(backbone_file(folder))
    head = UncertaintyHead(info.spec)
    expected = {key: value.shape for key, value in head.state_dict().items()}
    if {key: value.shape for key, value in weights.items()} != expected:
        raise CheckpointError(f"{head_file(folder)}: its weights do not fit its header; distil it again")
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        raise CheckpointError(f"{head_file(folder)}: its weights are not finite; distil it again")
    if info.features != backbone.feature_channels:
        raise CheckpointError(
            f"{head_file(folder)}: reads {info.features} features, but its backbone has {backbone.feature_channels}; "
            "distil it again"
        )
    head.load_state_dict(weights)
    seen = backbone_info.features
    if info.fire and fire_channel(seen) is None:
        raise CheckpointError(
            f"{head_file(folder)}: reads today's fire, which its backbone does not see; distil it again"
        )
    student = Student(fast(backbone), head.eval().requires_grad_(False), fire_channel(seen))
    normalization = Normalization(backbone_info.mean, backbone_info.std, f"of {backbone_file(folder).name}")
    return LoadedStudent(student.eval(), normalization, backbone_info, info, folder, precision)


def read_head_info(folder: Path) -> HeadInfo:
    """What the head's header says, without its weights."""
    with opened(head_file(folder)) as file:
        return parse_header(head_file(folder), file.metadata(), HeadInfo, written_by="fcer distill")

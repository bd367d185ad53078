"""What methods make their maps from: all that predicts a test year, and what it saw of one batch of samples.

Shape suffixes: K members, B samples, F features of the decoder's last map, H height, W width.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.models.backbones import Backbone
from fcer.models.ensemble import Batch, RawSample, pass_through, standardise
from fcer.models.inference import predict
from fcer.models.members import Member
from fcer.models.persistence_baseline import burning_today
from fcer.models.student_files import LoadedStudent

__all__ = ["FloatMaps", "Predictors", "SeenBatch", "SinglePass"]

FloatMaps = NDArray[np.floating]
T = TypeVar("T")


@dataclass(frozen=True)
class Predictors:
    """All that predicts a test year."""

    members: Sequence[Member]
    backbone: Member
    """The one of the members that is the student's, or was before it was trained along."""
    student: LoadedStudent | None = None
    shared: Normalization | None = None
    """Statistics that all members' inputs are standardised with; none: each with its own."""
    dropout_passes: int = 10
    seed: int = 0
    device: str = "auto"
    """Where members predict."""
    threshold: float = FIRE_THRESHOLD
    """Probability above which fire is predicted."""
    dropout: float = 0.0
    """Of the decoder in training."""
    families: Mapping[str, Path] = field(default_factory=dict)
    """Weights of methods that were trained for themselves, by the method's name."""

    @property
    def trained_along(self) -> LoadedStudent | None:
        """The student, where its backbone is none of the members."""
        return None if self.student is None or self.student.head.frozen else self.student

    @property
    def alone(self) -> tuple[Backbone, Normalization]:
        """The backbone that stands for a single model, with its statistics: the student's."""
        if own := self.trained_along:
            return own.student.backbone, own.normalization
        return self.backbone.backbone, self.backbone.normalization

    @property
    def backbone_parameters(self) -> int:
        """Numbers that the single backbone has learnt."""
        return sum(weight.numel() for weight in self.alone[0].parameters())


class SinglePass(NamedTuple):
    """What one pass through the student's backbone gives."""

    logits_BHW: torch.Tensor
    features_BFHW: torch.Tensor


class SeenBatch:
    """Some samples, and what the predictors make of them: each pass is made when the first method asks for it."""

    def __init__(self, predictors: Predictors, samples: Samples, start: int, read: Sequence[RawSample]) -> None:
        self.predictors, self.samples, self.read = predictors, samples, read
        self.start = start
        """The number of the first sample, which with the seed decides what is drawn."""
        self._made: dict[str, object] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` makes, made only once for this batch: probability and uncertainty may share passes."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]  # type: ignore[assignment]  # by this name nothing else was made
        return made

    @cached_property
    def batch(self) -> Batch:
        """Through every member, the backbone's features kept."""
        predictors = self.predictors
        return pass_through(
            predictors.members, self.samples, self.read, shared=predictors.shared, keep=predictors.backbone
        )

    @cached_property
    def members_KBHW(self) -> FloatMaps:
        """Members' probabilities."""
        return self.batch.probabilities_KBHW

    @cached_property
    def alone(self) -> SinglePass:
        """Of the student's backbone, which costs no pass of its own where it is a member."""
        if own := self.predictors.trained_along:
            logits_B1HW, features_BFHW = predict(
                own.student.backbone, standardise(self.read, self.samples, own.normalization)
            )
            return SinglePass(logits_B1HW[:, 0].cpu(), features_BFHW.cpu())
        return self.of_backbone

    @cached_property
    def of_backbone(self) -> SinglePass:
        """Of the member that the student began with, trained along or not."""
        assert self.batch.features_BFHW is not None
        place = list(self.predictors.members).index(self.predictors.backbone)
        return SinglePass(torch.from_numpy(self.batch.logits_KBHW[place]), torch.from_numpy(self.batch.features_BFHW))

    @cached_property
    def prob_BHW(self) -> FloatMaps:
        """The student's probability, which is its backbone's."""
        return np.asarray(self.alone.logits_BHW.sigmoid())

    @cached_property
    def today_BHW(self) -> torch.Tensor:
        """Where fire burns on the last day seen, 0 or 1."""
        return torch.from_numpy(np.stack([burning_today(days, self.samples) for days, _ in self.read])).float()

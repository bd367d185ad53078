"""Who teaches a student, on which samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fcer.data.calibration_split import choosing
from fcer.data.dataset import Dataset
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.errors import DataError
from fcer.models.backbones import architecture
from fcer.models.members import Member
from fcer.training.batches import draw_seed
from fcer.uncertainty.predictors import Predictors

__all__ = ["ENSEMBLE", "Teaching"]

ENSEMBLE = "ensemble"
"""The teacher whose members' passes are kept, to be measured as `head_target` says."""


@dataclass(frozen=True)
class Teaching:
    """Who teaches whom, with what."""

    dataset: Dataset
    """Holds the backbone's training and validation years."""
    teachers: Sequence[Member]
    backbone: Member
    """One of the teachers: the student's."""
    shared: Normalization | None = None
    """Statistics that all teachers' inputs are standardised with; none: each with its own."""
    crop: int = 128
    views: int = 1
    """Random views of each training sample."""
    seed: int = 0
    device: str = "auto"
    """Where the teachers work."""
    teacher: str = ENSEMBLE
    """The method whose uncertainty is taught; the ensemble's is measured later, in whichever way is asked for."""
    passes: int = 10
    """Of that method, where it is one of several passes."""
    families: Mapping[str, Path] = field(default_factory=dict)
    """Weights of that method, where it was trained for itself."""

    @property
    def predictors(self) -> Predictors:
        """What the teacher predicts with."""
        shared, families = self.shared, self.families
        return Predictors(
            self.teachers, self.backbone, None, shared, self.passes, self.seed, self.device, families=families
        )

    def training(self, normalization: Normalization | None = None) -> Samples:
        """Random views, drawn by the seed, the view's number and the sample's; raw without `normalization`."""
        fold = self.backbone.fold
        seed = draw_seed(self.seed, fold.number)
        return self._samples(fold.train, normalization=normalization, augment=True, seed=seed)

    def validation(self, normalization: Normalization | None = None) -> Samples:
        """Central crops, of fires that may choose an epoch; raw without `normalization`."""
        return self._samples(self.backbone.fold.validation, apart=self.backbone.apart, normalization=normalization)

    def _samples(self, years: Sequence[int], *, apart: bool = False, **how: Any) -> Samples:
        days, features = architecture(self.backbone.backbone.spec.arch).days, self.backbone.features
        samples = partial(Samples, days=days, features=features, crop=self.crop)
        fires = self.dataset.fires(years)
        found = samples(choosing(fires) if apart else fires, **how)
        if not found:
            raise DataError(
                f"{self.dataset.catalog.root}: no fire of {', '.join(map(str, years))} has {days + 1} consecutive "
                "days, which one sample needs; add longer fires, or choose another --arch"
            )
        return found

"""The maps of a year by every method that is compared, from as few passes as they need.

Shape suffixes: K passes, B samples, H height, W width.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from tqdm import tqdm

from fcer.core.disagreement import entropy, mutual_information, normalized_std, predictive_entropy
from fcer.core.surface import boundary
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples
from fcer.errors import ConfigError, DataError
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from fcer.models.backbones import Backbone
from fcer.models.ensemble import (
    Batch,
    RawSample,
    batches_of,
    pass_through,
    sample_labels,
    sample_sizes,
    standardise,
)
from fcer.models.members import Member
from fcer.models.student import StudentMaps
from fcer.models.student_files import LoadedStudent
from fcer.runtime.files import scratch_folder
from fcer.uncertainty.passes import TURNS, dropout_passes, turned_passes, with_dropout

__all__ = ["METHODS", "Predictors", "pass_counts", "write_method_maps"]

FloatMaps = NDArray[np.floating]


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

    @cached_property
    def with_dropout(self) -> Backbone:
        """The same backbone, dropout left on."""
        return with_dropout(self.alone[0])


class _Seen:
    """What the methods make their maps from: each pass is made when the first method asks for it."""

    def __init__(self, predictors: Predictors, samples: Samples, start: int, read: Sequence[RawSample]) -> None:
        self.predictors, self.samples, self.start, self.read = predictors, samples, start, read

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
    def own_pass(self) -> StudentMaps:
        """Of a student whose backbone is none of the members."""
        assert self.predictors.trained_along is not None
        loaded = self.predictors.trained_along
        return loaded.student.predict(standardise(self.read, self.samples, loaded.normalization))

    @cached_property
    def prob_BHW(self) -> FloatMaps:
        """The student's, which is its backbone's."""
        if self.predictors.trained_along:
            return self.own_pass.probability_BHW.cpu().numpy()
        return np.asarray(self.members_KBHW[list(self.predictors.members).index(self.predictors.backbone)])

    @cached_property
    def student_BHW(self) -> FloatMaps:
        """The student's uncertainty, at the cost of its head alone where its backbone is a member."""
        if self.predictors.trained_along:
            return self.own_pass.uncertainty_BHW.cpu().numpy()
        assert self.predictors.student is not None and self.batch.features_BFHW is not None
        own = list(self.predictors.members).index(self.predictors.backbone)
        logits_BHW = torch.from_numpy(self.batch.logits_KBHW[own])
        with torch.inference_mode():
            head = self.predictors.student.student.head
            return np.asarray(head(torch.from_numpy(self.batch.features_BFHW), logits_BHW).sigmoid())

    @cached_property
    def dropout_KBHW(self) -> FloatMaps:
        """With dropout left on."""
        predictors = self.predictors
        return dropout_passes(
            predictors.with_dropout,
            self.samples,
            self.read,
            predictors.alone[1],
            passes=predictors.dropout_passes,
            seed=predictors.seed + self.start,
        )

    @cached_property
    def turned_KBHW(self) -> FloatMaps:
        """Of every way to turn the input."""
        backbone, normalization = self.predictors.alone
        return turned_passes(backbone, self.samples, self.read, normalization)


def _random(seen: _Seen) -> FloatMaps:
    rng = np.random.default_rng((seen.predictors.seed, seen.start))
    return rng.random(seen.prob_BHW.shape, dtype=np.float32)


def _boundary_distance(seen: _Seen) -> FloatMaps:
    """Falls with the distance to the predicted fire's edge; nowhere any where no fire is predicted."""
    edges = boundary(seen.prob_BHW > 0.5)
    out = np.zeros(edges.shape, np.float32)
    for edge, nearness in zip(edges, out, strict=True):
        if edge.any():
            nearness[:] = 1 / (1 + ndimage.distance_transform_edt(~edge))
    return out


class _Method:
    """How a method gives probability and uncertainty, and how many passes it takes alone."""

    def __init__(
        self,
        prob: Callable[[_Seen], FloatMaps],
        unc: Callable[[_Seen], FloatMaps],
        passes: Callable[[Predictors], int] = lambda _: 1,
    ) -> None:
        self.prob, self.unc, self.passes = prob, unc, passes


def _backbone(seen: _Seen) -> FloatMaps:
    return seen.prob_BHW


def _ensemble(seen: _Seen) -> FloatMaps:
    return np.asarray(seen.members_KBHW.mean(0))


def _size(predictors: Predictors) -> int:
    return len(predictors.members)


METHODS: Mapping[str, _Method] = MappingProxyType(
    {
        "student": _Method(_backbone, lambda seen: seen.student_BHW),
        "ensemble": _Method(_ensemble, lambda seen: normalized_std(seen.members_KBHW), _size),
        "entropy": _Method(_backbone, lambda seen: entropy(seen.prob_BHW)),
        "ensemble_entropy": _Method(_ensemble, lambda seen: predictive_entropy(seen.members_KBHW), _size),
        "ensemble_mi": _Method(_ensemble, lambda seen: mutual_information(seen.members_KBHW), _size),
        "mc_dropout": _Method(
            lambda seen: np.asarray(seen.dropout_KBHW.mean(0)),
            lambda seen: normalized_std(seen.dropout_KBHW),
            lambda predictors: predictors.dropout_passes,
        ),
        "tta": _Method(
            lambda seen: np.asarray(seen.turned_KBHW.mean(0)),
            lambda seen: normalized_std(seen.turned_KBHW),
            lambda _: len(TURNS),
        ),
        "random": _Method(_backbone, _random),
        "boundary_distance": _Method(_backbone, _boundary_distance),
    }
)
"""By name. The student first; `random` and `boundary_distance` are controls, which know nothing or no model."""


def pass_counts(predictors: Predictors, methods: Sequence[str]) -> dict[str, int]:
    """How many passes through a backbone each method takes where it runs alone."""
    return {name: METHODS[name].passes(predictors) for name in methods}


def write_method_maps(path: Path, predictors: Predictors, samples: Samples, year: int, methods: Sequence[str]) -> None:
    """Predict every sample and write each method's maps as predicted maps of `year`.

    Maps go to disk as they are made: a year never has to fit in memory. Whole images, which differ in size, are
    padded to the largest.
    """
    if len(predictors.members) < 2:
        raise ConfigError(f"checkpoints: an ensemble needs two members or more, but there is {len(predictors.members)}")
    if "student" in methods and predictors.student is None:
        raise ValueError("there is no student to predict with")
    if "mc_dropout" in methods:
        _ = predictors.with_dropout  # a backbone without is refused before anything is predicted
    if not len(samples):
        raise DataError(f"{year}: no fire has {samples.days + 1} days in a row, which a sample takes; add longer fires")
    sizes = sample_sizes(samples)
    shape = (len(samples), *sizes.max(axis=0).tolist())
    names = [f"{name}_{kind}" for name in methods for kind in ("prob", "unc")]
    with scratch_folder(path.parent, "maps") as folder:
        arrays = {
            name: np.lib.format.open_memmap(
                folder / f"{name}.npy", "w+", np.uint8 if name == "y" else np.float32, shape
            )
            for name in ("y", *names)
        }
        with tqdm(total=len(samples), desc=f"predict {year}", unit="sample", disable=None, leave=False) as bar:
            for where in batches_of(samples):
                read = [samples.raw(k) for k in range(where.start, where.stop)]
                seen = _Seen(predictors, samples, where.start, read)
                rows, columns = sizes[where.start]
                place = where, slice(rows), slice(columns)
                arrays["y"][place] = [y for _, y in read]
                for name in methods:
                    arrays[f"{name}_prob"][place] = METHODS[name].prob(seen)
                    arrays[f"{name}_unc"][place] = METHODS[name].unc(seen)
                bar.update(where.stop - where.start)
        labels: dict[str, NDArray[Any]] = {**sample_labels(samples)}
        if samples.crop is None:
            labels["size"] = sizes
        write_maps(path, PredictedMaps.from_arrays({**arrays, **labels}, year=year, source=str(path)))

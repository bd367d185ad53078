"""Predicted maps and calibrated probabilities: what is fitted on some fires, seen on others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.core.arrays import BoolArray
from fcer.core.fire_counts import FireCounts
from fcer.core.recalibration import Recalibration
from fcer.core.recalibration_fits import RecalibrationChoice, choose_recalibration
from fcer.core.regions import fire_region
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import InputError, PredictionsError
from fcer.evaluation.calibrators import calibrator
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["calibrated_maps", "choose_from_maps", "forecast_fire", "near_fire_counts", "number_fires"]


def number_fires(maps: PredictedMaps) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """The fires' names, and whose each image is: guarantees are by fire, so that maps must say."""
    if maps.fire_id is None:
        raise PredictionsError(f"{maps.source}: no array fire_id; add it, since fires are calibrated on, not images")
    return np.unique(maps.fire_id, return_inverse=True)


def near_fire_counts(maps: PredictedMaps, method: str, radius: float) -> FireCounts:
    """A method's probabilities at most `radius` pixels from the fire that it forecasts, by fire, block by block.

    The forecast's fire, not tomorrow's: that is known when a map is drawn. Pixels around what burns tomorrow burn more
    often than their probability says, just because they were looked for there; on 27 real fires, probabilities that
    were calibrated there had an NLL skill of -0.99 over whole images, against 0.36 as they were and 0.39 to 0.42 if
    calibrated around the forecast.
    """
    names, fire_of = number_fires(maps)
    counts = FireCounts.empty(len(names))
    for images in maps.blocks():
        prob, fire, inside = maps.prob(method, images), maps.fire(images), maps.inside(images)
        for k in range(len(prob)):
            known = np.ones(prob[k].shape, bool) if inside is None else inside[k]
            near = fire_region(forecast_fire(prob[k], known), radius) & known
            counts.add(int(fire_of[images.start + k]), prob[k][near], fire[k][near])
    return counts


def forecast_fire(prob: NDArray[Any], known: BoolArray) -> BoolArray:
    """Where one map has fire; where no probability is above 0.5, the most probable of the known pixels stand for it."""
    return np.asarray((prob > min(FIRE_THRESHOLD, np.nextafter(prob[known].max(), -1))) & known)


def choose_from_maps(
    maps: Sequence[PredictedMaps], method: str, radius: float, weight: float | None = None
) -> RecalibrationChoice:
    """The recalibration of a method by cross-validation over the fires of some files, near the fire.

    Those are fires of images that the model was not trained on, and at best not those that chose its epoch.
    """
    if not maps:
        raise InputError(f"no validation maps of {method} to calibrate it on; predict its validation fires first")
    counts = FireCounts.join([near_fire_counts(some, method, radius) for some in maps])
    return choose_recalibration(counts, weight, others=calibrator.installed)


def calibrated_maps(maps: PredictedMaps, recalibrations: Mapping[str, Recalibration]) -> PredictedMaps:
    """The same maps with `METHOD_calibrated` beside each method that is recalibrated; nothing is copied."""
    arrays = dict(maps.arrays)
    for method, recalibration in recalibrations.items():
        arrays[f"{method}_calibrated_prob"] = _CalibratedArray(arrays[f"{method}_prob"], recalibration)
        arrays[f"{method}_calibrated_unc"] = arrays[f"{method}_unc"]
    names = (*maps.methods, *(f"{method}_calibrated" for method in recalibrations))
    return replace(maps, arrays=arrays, methods=names, file=None)


@dataclass(frozen=True)
class _CalibratedArray:
    """Probabilities that are calibrated as they are read."""

    raw: Any
    recalibration: Recalibration

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.raw.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def __getitem__(self, images: slice) -> NDArray[Any]:
        return self.recalibration.apply(self.raw[images])

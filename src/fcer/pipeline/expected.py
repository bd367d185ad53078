"""What forecasts of a student are held to later: its scores and inputs on its validation fires, fire by fire."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from fcer.core.arrays import BoolArray
from fcer.core.recalibration import Recalibration
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.sequential import share_at_most
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.input_summary import summarise_input
from fcer.data.samples import Samples
from fcer.evaluation.recalibrated import number_fires
from fcer.maps.predicted_maps import PredictedMaps
from fcer.models.expectations import Expectations
from fcer.models.student_files import LoadedStudent
from fcer.verification.alarms import PROMISED
from fcer.verification.scores import score_day

__all__ = ["expectations_of", "promise_of"]

_LACKING = 0.05
"""Fires without a value of a needed channel are left out of training data; a few such forecasts are no alarm."""
_MOST = 200
"""Fires whose scores are told: they travel with every map."""


def expectations_of(
    maps: PredictedMaps, samples: Samples, loaded: LoadedStudent, recalibration: Recalibration
) -> Expectations | None:
    """From validation maps, in the order of `samples`; None where fewer than two fires have scores."""
    means, lacking, today = _inputs(samples, loaded)
    days = _scores(maps, today, loaded.head.anchor_px, recalibration)
    return promise_of(days, means, lacking, len(set(number_fires(maps)[1].tolist())))


def promise_of(
    days: Mapping[str, Mapping[int, Sequence[float]]], means: Mapping[str, Sequence[float]], lacking: int, fires: int
) -> Expectations | None:
    """From each score's days, fire by fire, each channel's means over days, and how many fires lack a channel."""
    scores = {name: _told(by_fire) for name, by_fire in days.items() if len(by_fire) >= 2}
    if not scores:
        return None
    return Expectations(
        scores=scores,
        ranges={name: (min(values), max(values)) for name, values in means.items()},
        lacking=max(_LACKING, share_at_most(lacking, fires) if lacking else 0.0),
        threshold=FIRE_THRESHOLD,
        fires=fires,
    )


def _scores(
    maps: PredictedMaps, today: list[BoolArray], anchor_px: float, recalibration: Recalibration
) -> Mapping[str, dict[int, list[float]]]:
    """Of each score, each fire's days on which it is defined, in their order."""
    found: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in PROMISED}
    _, fire_of = number_fires(maps)
    for images in maps.blocks():
        burnt, unc = maps.fire(images), maps.unc("student", images)
        prob = recalibration.apply(maps.prob("student", images))
        for k, (owner, before) in enumerate(zip(fire_of[images], today[images], strict=True)):
            day = score_day(burnt[k], prob[k], unc[k], threshold=FIRE_THRESHOLD, anchor_px=anchor_px, today=before)
            for name in PROMISED:
                if not np.isnan(value := getattr(day, name)):
                    found[name][int(owner)].append(value)
    return found


def _told(by_fire: Mapping[int, Sequence[float]]) -> tuple[float, ...]:
    """Verification counts a fire by one day, mostly its first: the lower of that and of the day in the middle."""
    values = [float(min(days[0], np.median(days))) for days in list(by_fire.values())[:_MOST]]
    return tuple(sorted(round(value, 6) for value in values))


def _inputs(samples: Samples, loaded: LoadedStudent) -> tuple[dict[str, list[float]], int, list[BoolArray]]:
    """Each channel's standardised means over days, how many fires lack one on some day, and what burns."""
    means: dict[str, list[float]] = defaultdict(list)
    lacking, today = set(), []
    for k in range(len(samples)):
        raw, _ = samples.raw(k)
        today.append(np.asarray(raw[-1, samples.channels.index(ACTIVE_FIRE)] > 0))
        summary = summarise_input(raw, samples.channels, loaded.normalization)
        for name, mean in summary.means.items():
            means[name].append(round(mean, 4))
        if summary.lacking:
            lacking.add(samples.locate(k)[0])
    return means, len(lacking), today

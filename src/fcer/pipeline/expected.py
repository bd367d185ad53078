"""What forecasts of a student are held to later: its scores and inputs on its validation fires, fire by fire."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import beta, t

from fcer.core.recalibration import Recalibration
from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.core.sequential import share_at_most
from fcer.data.input_summary import summarise_input
from fcer.data.samples import Samples
from fcer.evaluation.recalibrated import number_fires
from fcer.maps.predicted_maps import PredictedMaps
from fcer.models.expectations import Expectations
from fcer.models.student_files import LoadedStudent
from fcer.verification.alarms import BOUNDS
from fcer.verification.scores import score_day

__all__ = ["expectations_of"]

_LACKING = 0.05
"""Fires without a value of a needed channel are left out of training data; a few such forecasts are no alarm."""


def expectations_of(
    maps: PredictedMaps, samples: Samples, loaded: LoadedStudent, recalibration: Recalibration
) -> Expectations | None:
    """From validation maps, in the order of `samples`; None where fewer than two fires have scores."""
    days = _scores(maps, loaded.head.anchor_px, recalibration)
    low, mean = {}, {}
    for name, by_fire in days.items():
        if len(by_fire) >= 2:
            # Verification counts a fire by one day, often its first: the lower of both ends is promised
            ends = [_interval([float(np.mean(values)) for values in some]) for some in _ways(by_fire)]
            low[name], mean[name] = min(end for end, _ in ends), ends[0][1]
    if not low:
        return None
    fires = len(set(number_fires(maps)[1].tolist()))
    ranges, lacking = _inputs(samples, loaded)
    return Expectations(
        low=low,
        mean=mean,
        ranges=ranges,
        beyond=_share_beyond(fires, len(ranges)),
        lacking=max(_LACKING, share_at_most(lacking, fires) if lacking else 0.0),
        threshold=FIRE_THRESHOLD,
        fires=fires,
    )


def _scores(
    maps: PredictedMaps, anchor_px: float, recalibration: Recalibration
) -> Mapping[str, dict[int, list[float]]]:
    """Of each score, each fire's days on which it is defined, in their order."""
    found: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in BOUNDS}
    _, fire_of = number_fires(maps)
    for images in maps.blocks():
        burnt, unc = maps.fire(images), maps.unc("student", images)
        prob = recalibration.apply(maps.prob("student", images))
        for k, owner in enumerate(fire_of[images]):
            day = score_day(burnt[k], prob[k], unc[k], threshold=FIRE_THRESHOLD, anchor_px=anchor_px)
            for name, (worst, best) in BOUNDS.items():
                if not np.isnan(value := getattr(day, name)):
                    found[name][int(owner)].append(min(max(value, worst), best))
    return found


def _ways(by_fire: Mapping[int, list[float]]) -> tuple[list[list[float]], list[list[float]]]:
    """Each fire's days: all of them, and the first."""
    return list(by_fire.values()), [values[:1] for values in by_fire.values()]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Lower end of the 95 % interval of a mean, and the mean."""
    n, middle = len(values), float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(n))
    return middle - float(t.ppf(0.975, n - 1)) * error, middle


def _inputs(samples: Samples, loaded: LoadedStudent) -> tuple[dict[str, tuple[float, float]], int]:
    """The range of each channel's standardised mean over days, and how many fires lack a channel on some day."""
    means: dict[str, list[float]] = defaultdict(list)
    lacking = set()
    for k in range(len(samples)):
        raw, _ = samples.raw(k)
        summary = summarise_input(raw, samples.channels, loaded.normalization)
        for name, mean in summary.means.items():
            means[name].append(round(mean, 4))
        if summary.lacking:
            lacking.add(samples.locate(k)[0])
    return {name: (min(values), max(values)) for name, values in means.items()}, len(lacking)


def _share_beyond(fires: int, channels: int) -> float:
    """How many new fires may lie outside of what so many had: below all or above all, with 97.5 % for all channels.

    The share below the lowest of n has the law Beta(1, n), and both ends together Beta(2, n - 1).
    """
    return float(beta.ppf(1 - 0.025 / max(channels, 1), 2, fires - 1)) if fires > 1 else 1.0

"""Raw and calibrated probabilities side by side, in every region of the sweep: `calibration.csv`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fcer.core.arrays import FloatArray
from fcer.core.calibration import ECE_BINS, base_losses, log_losses, skill_of, width_bin
from fcer.core.fire_counts import FireCounts
from fcer.core.recalibration import Recalibration
from fcer.core.recalibration_fits import RecalibrationChoice, choose_recalibration
from fcer.core.regions import PIXEL_METRES, ring_index
from fcer.evaluation.calibrators import calibrator
from fcer.evaluation.recalibrated import forecast_fire, near_fire_counts, number_fires
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["calibration_rows", "cross_calibration", "held_out_rows", "own_probabilities"]

_LOSSES = ("brier", "nll", "ece")


def calibration_rows(
    maps: PredictedMaps, recalibrations: Mapping[str, Recalibration], radii: Sequence[float], fitted: str
) -> pd.DataFrame:
    """One row per method and radius: Brier score, NLL and calibration error before and after.

    `fitted` says which fires the recalibrations come from: `validation`, or `cross` for those of other years.
    """
    frames = [_rows(maps, method, [one] * maps.shape[0], radii, fitted) for method, one in recalibrations.items()]
    return pd.concat(frames, ignore_index=True)


def held_out_rows(
    maps: PredictedMaps, method: str, choice: RecalibrationChoice, radii: Sequence[float]
) -> pd.DataFrame:
    """The rows of the very fires that a recalibration was chosen on, each as it is fitted without them: `held_out`.

    The choice among a handful of kinds has seen them all the same. `around` says what regions surround: `fire`, what
    burns on the next day, as in every sweep; or `forecast`, where fire is predicted, which is what can be known and
    where probabilities are made to mean what they say.
    """
    _, fire_of = number_fires(maps)
    of_image = [choice.held_out[fire] for fire in fire_of]
    frames = [
        _rows(maps, method, of_image, radii, "held_out", forecast=around == "forecast").assign(around=around)
        for around in ("fire", "forecast")
    ]
    return pd.concat(frames, ignore_index=True)


def cross_calibration(
    years: Sequence[PredictedMaps], radii: Sequence[float], radius: float, weight: float | None
) -> pd.DataFrame:
    """The rows of each year under recalibrations that the fires of all other years, by their own models, choose."""
    methods = own_probabilities(years)
    counts = {(maps.year, name): near_fire_counts(maps, name, radius) for maps in years for name in methods}
    frames = []
    for maps in years:
        others = {name: [counts[one.year, name] for one in years if one is not maps] for name in methods}
        chosen = {
            name: choose_recalibration(FireCounts.join(of), weight, others=calibrator.installed).recalibration
            for name, of in others.items()
        }
        frames.append(calibration_rows(maps, chosen, radii, "cross"))
    return pd.concat(frames, ignore_index=True)


def own_probabilities(years: Sequence[PredictedMaps]) -> list[str]:
    """The methods with probabilities that no earlier one has: many take the student's."""
    found: list[str] = []
    for method in years[0].methods:
        if not any(_alike(years[0], method, earlier) for earlier in found):
            found.append(method)
    return found


def _alike(maps: PredictedMaps, a: str, b: str) -> bool:
    return all(np.array_equal(maps.prob(a, images), maps.prob(b, images)) for images in maps.blocks())


def _rows(
    maps: PredictedMaps,
    method: str,
    of_image: Sequence[Recalibration],
    radii: Sequence[float],
    fitted: str,
    *,
    forecast: bool = False,
) -> pd.DataFrame:
    finite = sorted(radius for radius in set(radii) if np.isfinite(radius))
    sums = _sums(maps, method, of_image, finite, forecast=forecast)
    n, burnt = sums[:, 0], sums[:, 1]
    base = dict(zip(_LOSSES, base_losses(burnt, n), strict=False))
    columns = {"n_pixels": n.astype(np.int64), "prevalence": burnt / n}
    for offset, suffix in ((2, ""), (4 + 2 * ECE_BINS, "_calibrated")):
        mean = {"brier": sums[:, offset] / n, "nll": sums[:, offset + 1] / n}
        columns |= {f"{name}{suffix}": loss for name, loss in mean.items()}
        columns |= {f"{name}_skill{suffix}": skill_of(loss, base[name]) for name, loss in mean.items()}
        bins = sums[:, offset + 2 : offset + 2 + 2 * ECE_BINS].reshape(len(n), 2, ECE_BINS)
        columns[f"ece{suffix}"] = np.abs(bins[:, 0] - bins[:, 1]).sum(axis=1) / n
    names = {"year": maps.year, "method": method, "fitted": fitted, "kind": of_image[0].kind}
    radius = np.array([*finite, np.inf])
    return pd.DataFrame({**names, "radius_px": radius, "radius_m": radius * PIXEL_METRES, **columns})


def _sums(
    maps: PredictedMaps, method: str, of_image: Sequence[Recalibration], finite: Sequence[float], *, forecast: bool
) -> FloatArray:
    """Of the pixels in each region: number, burnt, and of both probabilities losses and bins.

    Regions lie around what burns, on images with fire; or around where it is forecast, on all.
    """
    rings = len(finite) + 1
    total = np.zeros((rings, 2 * (3 + 2 * ECE_BINS)))
    for images in maps.blocks():
        fire, raw, inside = maps.fire(images), maps.prob(method, images), maps.inside(images)
        for k in range(len(fire)) if forecast else np.flatnonzero(fire.any(axis=(1, 2))):
            known = np.ones(fire[k].shape, bool) if inside is None else inside[k]
            centre = forecast_fire(raw[k], known) if forecast else fire[k]
            ring = ring_index(centre[None], [*finite, np.inf])[0][known].astype(np.intp)
            burnt, p = fire[k][known], np.asarray(raw[k], np.float64)[known]
            parts = [np.ones(p.size), burnt]
            columns = [np.bincount(ring, weights=part, minlength=rings) for part in parts]
            for prob in (p, of_image[images.start + k].apply(p)):
                columns += [
                    np.bincount(ring, weights=loss, minlength=rings)
                    for loss in ((prob - burnt) ** 2, log_losses(burnt, prob))
                ]
                cell = ring * ECE_BINS + width_bin(prob, ECE_BINS)
                for weights in (prob, burnt):
                    binned = np.bincount(cell, weights=weights, minlength=rings * ECE_BINS)
                    columns += list(binned.reshape(rings, ECE_BINS).T)
            total += np.stack(columns, axis=1)
    return np.cumsum(total, axis=0)

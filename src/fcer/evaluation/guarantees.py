"""What an evaluation says of promises: guaranteed zones and calibrated probabilities, by method."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fcer.core.recalibration import NONE, Recalibration
from fcer.errors import InputError, PredictionsError, warn
from fcer.evaluation.calibration_table import cross_calibration
from fcer.evaluation.comparison import method_pairs
from fcer.evaluation.controls import split_controls
from fcer.evaluation.results import Results
from fcer.evaluation.zone_table import ZoneTables, area_tests, cross_zone_tables
from fcer.evaluation.zone_verdict import preferred
from fcer.maps.predicted_maps import PredictedMaps

__all__ = ["Guarantees", "cross_fitted", "with_guarantees"]

_MOST_PIXELS = 2**27
"""Of all years: zones look at every pixel some forty times."""


@dataclass(frozen=True)
class Guarantees:
    """Zones, and raw and calibrated probabilities side by side."""

    zones: ZoneTables
    calibration: pd.DataFrame

    @classmethod
    def join(cls, parts: Sequence["Guarantees"]) -> "Guarantees | None":
        """All of them, one below the other; None for none."""
        if not parts:
            return None
        calibration = pd.concat([part.calibration for part in parts], ignore_index=True)
        return cls(ZoneTables.join([part.zones for part in parts]), calibration)


def cross_fitted(
    years: Sequence[PredictedMaps],
    results: Results,
    misses: Sequence[float],
    prior: Recalibration = NONE,
) -> Guarantees | None:
    """Of every method, each year calibrated on the fires of all others; None, with the reason, where that cannot be.

    Of one year, or where maps do not say whose fire an image shows, nothing is expected, and nothing is said. `prior`
    undoes the weight of fire pixels in training, where that is known.
    """
    settings = results.settings
    if len(years) < 2 or any(maps.fire_id is None for maps in years):
        return None
    methods = [name for name in settings.own_methods if name in years[0].methods]
    try:
        if sum(maps.shape[0] * maps.shape[1] * maps.shape[2] for maps in years) > _MOST_PIXELS:
            raise InputError("there are too many images to look for them at every level")
        how = {"misses": misses, "n_draws": settings.bootstrap, "seed": settings.seed}
        zones = cross_zone_tables(years, methods, recalibrations=dict.fromkeys(methods, prior), **how)
        _, controls = split_controls(years[0].methods, settings.reference)
        own = [replace(maps, methods=tuple(m for m in maps.methods if m not in controls)) for maps in years]
        weight = prior.weight if prior.kind == "prior" else None
        radii = list(results.sweep["radius_px"].unique())
        return Guarantees(zones, cross_calibration(own, radii, settings.anchor_px, weight))
    except (InputError, PredictionsError) as error:
        warn(f"no zones by other years' fires: {error}")
        return None


def with_guarantees(results: Results, found: Guarantees | None) -> Results:
    """The results with zones, calibration, and the paired tests by fire of the zones' areas after all others."""
    if found is None:
        return results
    settings, by_fire = results.settings, found.zones.by_fire
    lead = "student" if "student" in settings.own_methods else settings.reference
    pairs = method_pairs(settings.own_methods, lead)
    tests = area_tests(preferred(by_fire), pairs, n_draws=settings.bootstrap, seed=settings.seed)
    return replace(
        results,
        tests=pd.concat([results.tests, tests], ignore_index=True) if len(tests) else results.tests,
        zones=found.zones.table,
        zones_by_fire=by_fire,
        calibration=found.calibration,
    )

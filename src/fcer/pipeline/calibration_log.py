"""What a calibration changed and costs, told and logged."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from fcer.core.recalibration_fits import RecalibrationChoice
from fcer.core.risk_control import ENOUGH_FIRES
from fcer.models.calibration_files import Calibration, calibration_file, calibration_table_file
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.study_data import Say
from fcer.runtime.sealed_text import read_sealed_csv

__all__ = ["log_calibration", "region_curves", "tell_calibration"]

_SCORES = ("brier", "nll", "ece", "brier_skill", "nll_skill")


def tell_calibration(
    say: Say, name: str, calibration: Calibration, choice: RecalibrationChoice, misses: Sequence[float]
) -> None:
    """Which recalibration was chosen against which, how large zones are, and what twice the fires would save."""
    candidates = ", ".join(f"{kind} {nll:.4f}" for kind, nll in choice.nll.items())
    say(
        f"{name}: calibrated by {calibration.recalibration.kind}; NLL of fires that a candidate was not fitted on, "
        f"within {calibration.radius_px:.3g} px of the forecast's fire: {candidates} (ties to the simpler)"
    )
    zones = calibration.rules_of("threshold")
    possible = "; ".join(
        f"{rule.miss:g}: {rule.area_km2:.0f} km² on average, {rule.area_2n_km2:.0f} if {2 * rule.n_fires} fires like "
        f"these {rule.n_fires} calibrated"
        for rule in zones
    )
    lacking = [f"{miss:g}" for miss in misses if miss not in {rule.miss for rule in zones}]
    n_fires = zones[0].n_fires if zones else len(calibration.fires)
    without = f"; {n_fires} fires cannot guarantee {', '.join(lacking)}" if lacking else ""
    epoch = f"also chose its epoch (from {ENOUGH_FIRES} in each half on, one chooses and one calibrates)"
    told = epoch if calibration.chose_epoch else "chose no epoch"
    say(f"{name}: its {len(calibration.fires)} validation fires {told}; zones stand on {n_fires} fires")
    say(f"{name}: {f'zones by expected miss: {possible}' if possible else 'no zone'}{without}")


def log_calibration(log: RunLog, folder: Path, where: str) -> None:
    """The calibration in a student's folder, with Brier score, NLL, miscalibration and skill in every region."""
    log.file(calibration_file(folder), where)
    path = calibration_table_file(folder)
    if path.is_file():  # an older version wrote none
        table = read_sealed_csv(path)
        log.file(path, where)
        log.tables({path.stem: table})
        log.curves(region_curves(table))


def region_curves(table: pd.DataFrame) -> Iterator[tuple[str, float, int]]:
    """`uncalibrated/nll`, `calibrated/nll` and so on: name, value, and as step the radius in px, -1 for all.

    `uncalibrated_forecast/` and `calibrated_forecast/` are of regions around the forecast's fire.
    """
    for row in table.to_dict("records"):
        radius = float(row["radius_px"])
        step = -1 if math.isinf(radius) else int(radius)
        if step not in (-1, radius):
            continue
        around = "_forecast" if row["around"] == "forecast" else ""
        for name in _SCORES:
            for group, column in (("uncalibrated", name), ("calibrated", f"{name}_calibrated")):
                if not math.isnan(row[column]):
                    yield f"{group}{around}/{name}", float(row[column]), step

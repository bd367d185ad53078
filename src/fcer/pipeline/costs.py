"""What each method costs, beside what it is worth: `costs.csv` in the results."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fcer.errors import FcerWarning
from fcer.pipeline.run_log import RunLog
from fcer.pipeline.year_maps import YearToPredict
from fcer.runtime.sealed_text import write_sealed_csv
from fcer.training.history import history_of, read_epochs
from fcer.training.member import history_file
from fcer.uncertainty.costs import Cost, measure_costs
from fcer.uncertainty.families import family_facts
from fcer.uncertainty.predictors import Predictors

__all__ = ["write_costs"]


def write_costs(planned: Sequence[YearToPredict], out: Path, log: RunLog) -> pd.DataFrame:
    """Measure every method on the first test year; nothing of it decides a result."""
    first = planned[0]
    trained = {name: _seconds(name, first.predictors) for name in first.methods}
    costs = measure_costs(first.predictors, first.samples, first.methods, trained)
    table = pd.DataFrame(costs, columns=Cost._fields)
    write_sealed_csv(out / "costs.csv", table)
    log.file(out / "costs.csv", "results")
    log.metrics({f"cost/{cost.method}/ms": cost.ms_per_sample for cost in costs})
    return table


def _seconds(name: str, predictors: Predictors) -> float:
    """Of all trainings that a method needs: members, the head, its own."""
    backbone, members = _member(predictors.backbone.path), sum(_member(m.path) for m in predictors.members)
    if name.startswith("ensemble"):
        return members
    if name == "student" and predictors.student is not None:
        return members + _spent(history_of(predictors.student.folder))
    if name in predictors.families:
        own = float(family_facts(predictors.families[name])["seconds"])
        return own if name == "packed" else backbone + own
    return 0.0 if name == "persistence" else backbone


def _member(path: Path) -> float:
    return _spent(history_file(path))


def _spent(history: Path) -> float:
    """Seconds of all epochs; NaN where nobody wrote them down, as of members from elsewhere."""
    if not history.exists():
        return math.nan
    try:
        return float(sum(record.seconds for record in read_epochs(history)))
    except (ValueError, TypeError) as error:
        sentence = f"{history}: cannot be read ({error}), so that what its training cost is not known"
        warnings.warn(sentence, FcerWarning, stacklevel=2)
        return math.nan

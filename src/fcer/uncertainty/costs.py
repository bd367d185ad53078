"""What each method costs where it runs alone, measured on the samples at hand."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fcer.data.samples import Samples
from fcer.models.ensemble import batches_of
from fcer.uncertainty.predictors import Predictors, SeenBatch
from fcer.uncertainty.registry import Counts, method_named

__all__ = ["Cost", "measure_costs"]

_TIMES = 2
"""The fastest of so many counts, after one to warm up: others may want the machine in between."""


class Cost(NamedTuple):
    """Of one method."""

    method: str
    passes: int
    """Through a backbone."""
    ms_per_sample: float
    """From days in memory to probability and uncertainty."""
    parameters: int
    """Numbers that were learnt."""
    train_seconds: float
    """Of all that has to be trained for it; NaN where nobody has measured it."""


def measure_costs(
    predictors: Predictors, samples: Samples, methods: Sequence[str], trained: Mapping[str, float]
) -> list[Cost]:
    """Time each method on the first batch of samples; `trained` are seconds of training by method."""
    where = next(batches_of(samples))
    read = [samples.raw(k) for k in range(where.start, where.stop)]
    costs = []
    for name in methods:
        method = method_named(name)
        passes = method.passes(predictors)
        # a method of a single pass does not wait for other members
        alone = replace(predictors, members=[predictors.backbone]) if passes == 1 else predictors
        spent = []
        for _ in range(1 + _TIMES):
            seen, started = SeenBatch(alone, samples, where.start, read), time.perf_counter()
            method.prob(seen)
            method.unc(seen)
            spent.append(time.perf_counter() - started)
        milliseconds = 1000 * min(spent[1:]) / len(read)
        learnt = method.parameters(predictors) if isinstance(method, Counts) else predictors.backbone_parameters
        costs.append(Cost(name, passes, milliseconds, learnt, trained.get(name, float("nan"))))
    return costs

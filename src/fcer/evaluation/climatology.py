"""What a forecast of the region's own base rate everywhere scores: whoever is worse has no skill there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fcer.core.calibration import base_losses

if TYPE_CHECKING:
    from fcer.evaluation.results import Results

__all__ = ["CLIMATOLOGY", "climatology", "mean_scores", "scores_by_year"]

CLIMATOLOGY = "climatology"
"""Its name where methods are listed."""


def climatology(results: Results) -> pd.DataFrame:
    """Brier score and negative log-likelihood at the anchor of the share of pixels that burnt there, by year.

    It knows the share of the very years that it is scored on, which no forecast does. Its skill is zero by definition.
    """
    at_anchor = results.anchor[results.anchor["base_rate"].notna()].drop_duplicates("year")
    rate = at_anchor["base_rate"].to_numpy(float)
    brier, nll = base_losses(rate, np.ones_like(rate))
    scores = {"base_rate": rate, "brier": brier, "nll": nll, "brier_skill": 0.0, "nll_skill": 0.0}
    return pd.DataFrame({"year": at_anchor["year"].to_numpy(), "method": CLIMATOLOGY, **scores})


def scores_by_year(results: Results) -> pd.DataFrame:
    """Segmentation and the anchor's scores, one row per year and method, climatology's last."""
    methods = results.segmentation.merge(results.anchor, on=["year", "method"])
    return pd.concat([methods, climatology(results)], ignore_index=True)


def mean_scores(results: Results) -> pd.DataFrame:
    """The same as means over years with, in `METRIC_std`, the population standard deviation: one row per method."""
    methods = results.over_years("segmentation").merge(results.over_years("anchor"), on="method")
    base = climatology(results).drop(columns=["year", "method"])
    mean = pd.DataFrame([{"method": CLIMATOLOGY, **base.mean(), **base.std(ddof=0).add_suffix("_std")}])
    return pd.concat([methods, mean], ignore_index=True)

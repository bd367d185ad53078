"""Drawn maps held to what burnt: a proper score of burnt area and of whole maps, and how much the draws differ."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fcer.core.sample_scores import SampleScores, sample_scores
from fcer.maps.predicted_maps import open_maps

__all__ = ["SAMPLE_COLUMNS", "sample_table"]

SAMPLE_COLUMNS = ["year", "method", "samples", "images", *SampleScores._fields]


def sample_table(files: Sequence[Path]) -> pd.DataFrame:
    """A row for each year and method whose file holds samples, means over images; empty where none does."""
    rows = []
    for file in files:
        with open_maps(file, values=False) as maps:
            for method in maps.sampled:
                scores = []
                for images in maps.blocks():
                    drawn, fire = maps.samples(method, images), maps.fire(images)
                    scores += [sample_scores(some, truth) for some, truth in zip(drawn, fire, strict=True)]
                count = maps.arrays[f"{method}_samples"].shape[1]
                means = dict(zip(SampleScores._fields, np.mean(scores, axis=0).tolist(), strict=True))
                rows.append({"year": maps.year, "method": method, "samples": count, "images": len(scores), **means})
    return pd.DataFrame(rows, columns=SAMPLE_COLUMNS)

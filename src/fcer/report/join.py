"""Result folders of single years as one result over all years."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fcer.errors import PredictionsError
from fcer.evaluation.comparison import compare, method_pairs
from fcer.evaluation.results import Results

__all__ = ["join"]

_BY_YEAR = (
    *("sweep", "segmentation", "per_image", "anchor", "reliability", "corp", "own_errors", "risk_coverage"),
    "thresholds",
)
_TESTED = ("n", "n_nonzero", "w_plus", "w_minus", "p", "p_two_sided", "rank_biserial", "median_delta")


def join(folders: Sequence[Path | str]) -> Results:
    """One result from folders that `Results.write` wrote, in the order of their years; a single one as it is.

    Tests are made anew from the scores of all images, with Holm's correction and intervals that draw fires.
    What needs more than the folders hold is left out: intervals of means over years, and tests at anchors
    other than the anchor itself (their scores are there, as means over years).
    """
    if not folders:
        raise PredictionsError("no result folders to join; give the folders that fcer evaluate wrote")
    parts = [(Path(folder), Results.read(folder)) for folder in folders]
    _check(parts)
    if len(parts) == 1:
        return parts[0][1]
    results = [part for _, part in sorted(parts, key=lambda part: part[1].settings.years)]
    first = results[0].settings
    anchors = {year: part.settings.anchor_of(year) for part in results for year in part.settings.years}
    settings = replace(first, years=tuple(sorted(anchors)))
    if first.anchors:
        own = tuple(anchors[year] for year in settings.years)
        settings = replace(settings, anchors=own, anchor_px=float(np.mean(own)))
    tables = {name: _concat(results, name) for name in _BY_YEAR}
    lead = "student" if "student" in first.own_methods else first.reference
    pairs = method_pairs(first.own_methods, lead, first.controls)
    tests = compare(tables["per_image"], pairs, first.bootstrap, first.seed, first.controls)
    # zones are calibrated, and their areas tested, folder by folder: those tests cannot be pooled over folders
    intervals = pd.concat([part.intervals for part in results], ignore_index=True)
    return Results(
        settings,
        **tables,
        tests=tests,
        intervals=intervals[intervals["scope"] != "mean"].sort_values("scope", kind="stable", ignore_index=True),
        sensitivity=_sensitivity(results, tests),
        zones=_concat(results, "zones"),
        zones_by_fire=_concat(results, "zones_by_fire"),
        calibration=_concat(results, "calibration"),
    )


def _check(parts: Sequence[tuple[Path, Results]]) -> None:
    """Refuse what cannot stand in one table."""
    origin, first = parts[0]
    seen: dict[int, Path] = {}
    for folder, part in parts:
        for year in part.settings.years:
            if year in seen:
                raise PredictionsError(f"{seen[year]} and {folder} both hold the year {year}; give each year once")
            seen[year] = folder
        shared = _shared(first)
        for name, ours in _shared(part).items():
            theirs = shared[name]
            if ours != theirs:
                raise PredictionsError(
                    f"{folder} was evaluated with the {name} {ours}, {origin} with {theirs}; evaluate them alike"
                )


def _shared(part: Results) -> dict[str, str]:
    """What all folders must agree on, in words."""
    return {
        "methods": ", ".join(sorted(part.settings.methods)),
        "reference": part.settings.reference,
        "threshold": f"{part.settings.threshold:g}",
        "anchor": "of each year" if part.settings.anchors else f"{part.settings.anchor_px} px",
        "radii": ", ".join(f"{radius:g}" for radius in part.sweep["radius_px"].unique()),
    }


def _concat(results: Sequence[Results], table: str) -> Any:
    """The table of all results, by year; None where none has it."""
    frames = [frame for part in results if (frame := getattr(part, table)) is not None]
    if not frames:
        return None
    return pd.concat(frames, ignore_index=True).sort_values("year", kind="stable", ignore_index=True)


def _sensitivity(results: Sequence[Results], tests: pd.DataFrame) -> pd.DataFrame:
    """Scores at the anchors that all years share, as means over years; tested at the anchor alone.

    A method's own ASD differs from folder to folder and is no shared anchor. Where years have anchors of their own,
    the same multiple of each is shared, and its radius a mean like the scores.
    """
    own = bool(results[0].settings.anchors)
    keys = ["anchor", *([] if own else ["radius_px", "radius_m"]), "metric", "a", "b"]
    averaged = ["a_score", "b_score", *(["radius_px", "radius_m"] if own else [])]
    tables = [part.sensitivity.assign(years=len(part.settings.years)) for part in results]
    rows = []
    for key, same in pd.concat(tables, ignore_index=True).groupby(keys, sort=False):
        if len(same) == len(results) and not (own and str(key[0]).startswith("ASD of")):
            scores = {name: np.average(same[name], weights=same["years"]) for name in averaged}
            rows.append(dict(zip(keys, key, strict=True)) | scores)
    joined = pd.DataFrame(rows, columns=[*keys, *averaged])
    pooled = tests[(tests["scope"] == "pooled") & (tests["unit"] == "image")].assign(anchor="anchor")
    merged = joined.merge(
        pooled[["anchor", "metric", "a", "b", *_TESTED]], on=["anchor", "metric", "a", "b"], how="left"
    )
    return merged[list(results[0].sensitivity.columns)]

"""The fires that the report shows as maps: one small and one large, each as usual as they come."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.regions import fire_region
from fcer.errors import PredictionsError
from fcer.evaluation.results import Results, Settings
from fcer.maps.predicted_maps import PredictedMaps, open_maps

__all__ = ["Case", "case_table", "choose_cases", "compared_methods", "read_cases", "shown_methods"]

_MOST_SHOWN = 4
"""So many methods have room beside each other on the page."""


@dataclass(frozen=True)
class Case:
    """One fire image with every method's maps of it."""

    size: str
    """`small` or `large`: up to the median fire size, or beyond."""
    year: int
    index: int
    fire_id: str
    date: str
    fire_pixels: int
    score: float
    """The difference in AUROC of the compared methods, or the AUROC of a single one."""
    pool_mean: float
    """Mean of `score` over all images of this size."""
    fire: BoolArray
    region: BoolArray
    error: BoolArray
    """Where the reference is wrong."""
    prob: Mapping[str, FloatArray]
    unc: Mapping[str, FloatArray]


def compared_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """The student and the ensemble where both are there, else the first two; a single method alone."""
    return ("student", "ensemble") if {"student", "ensemble"} <= set(methods) else tuple(methods[:2])


def shown_methods(settings: Settings) -> tuple[str, ...]:
    """The methods that maps are shown of: the compared ones and the reference, then others while there is room."""
    own = settings.own_methods
    first = dict.fromkeys([*compared_methods(own), settings.reference, *own])
    chosen = list(first)[:_MOST_SHOWN]
    return tuple(method for method in own if method in chosen)


def choose_cases(results: Results, fire_pixels: pd.Series) -> pd.DataFrame:
    """The image of each size whose score is closest to the mean of its size; up to two rows.

    `fire_pixels` is the size of the fire by year and index of the image. Images whose AUROC is undefined are
    left out; the first wins where several are equally close.
    """
    first, *second = compared_methods(results.settings.own_methods)
    auroc = results.per_image.pivot(index=["year", "index"], columns="method", values="auroc")
    score = auroc[first] - auroc[second[0]] if second else auroc[first]
    known = pd.DataFrame({"score": score, "fire_pixels": fire_pixels}).dropna().sort_index()
    is_small = known["fire_pixels"] <= known["fire_pixels"].median()
    chosen = []
    for size, pool in (("small", known[is_small]), ("large", known[~is_small])):
        if len(pool):
            mean = pool["score"].mean()
            place = (pool["score"] - mean).abs().idxmin()
            chosen.append(pool.loc[[place]].assign(size=size, pool_mean=mean).reset_index())
    columns = ["year", "index", "score", "fire_pixels", "size", "pool_mean"]
    return pd.concat(chosen, ignore_index=True)[columns] if chosen else pd.DataFrame(columns=columns)


def read_cases(results: Results, paths: Sequence[Path]) -> list[Case]:
    """The chosen images, from the predicted-maps files that were evaluated (all of them or some)."""
    with ExitStack() as files:
        years: dict[int, PredictedMaps] = {}
        sizes = []
        for path in paths:
            maps = files.enter_context(open_maps(path))
            if maps.year in years:
                raise PredictionsError(
                    f"{years[maps.year].source} and {path} both hold the year {maps.year}; give one file for each year"
                )
            years[maps.year] = maps
            sizes.append(_fire_pixels(results, maps))
        chosen = choose_cases(results, pd.concat(sizes)) if sizes else pd.DataFrame()
        return [_read_case(results, years[row["year"]], row) for row in chosen.to_dict("records")]


def case_table(cases: Sequence[Case]) -> pd.DataFrame:
    """One row per pixel of each case."""
    frames = []
    for case in cases:
        row, column = np.indices(case.fire.shape)
        columns: dict[str, Any] = {"size": case.size, "year": case.year, "index": case.index}
        columns |= {"row": row.ravel(), "column": column.ravel()}
        masks = {"fire": case.fire, "region": case.region, "error": case.error}
        columns |= {name: mask.ravel().astype(int) for name, mask in masks.items()}
        for method in case.prob:
            columns |= {f"{method}_prob": case.prob[method].ravel(), f"{method}_unc": case.unc[method].ravel()}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _fire_pixels(results: Results, maps: PredictedMaps) -> pd.Series:
    """The size of each fire of the file, by year and index, if the file is one that was evaluated."""
    pixels = np.concatenate([np.count_nonzero(maps.fire(images), axis=(1, 2)) for images in maps.blocks()])
    on_fire = np.flatnonzero(pixels)
    evaluated = results.per_image[results.per_image["year"] == maps.year]["index"].unique()
    if not set(results.settings.own_methods) <= set(maps.methods) or set(evaluated) != set(on_fire):
        raise PredictionsError(
            f"{maps.source}: not the predicted maps that were evaluated for {maps.year}; give those, or evaluate these"
        )
    index = pd.MultiIndex.from_product([[maps.year], on_fire], names=["year", "index"])
    return pd.Series(pixels[on_fire], index=index)


def _read_case(results: Results, maps: PredictedMaps, row: Mapping[Any, Any]) -> Case:
    index = int(row["index"])
    image = slice(index, index + 1)
    methods = shown_methods(results.settings)
    rows, columns = maps.shape[1:] if maps.size is None else maps.size[index]
    seen = 0, slice(rows), slice(columns)  # without padding
    fire = maps.fire(image)[seen]
    prob = {method: maps.prob(method, image)[seen] for method in methods}
    return Case(
        size=row["size"],
        year=maps.year,
        index=index,
        fire_id="" if maps.fire_id is None else str(maps.fire_id[index]),
        date="" if maps.date is None else str(maps.date[index]),
        fire_pixels=int(row["fire_pixels"]),
        score=float(row["score"]),
        pool_mean=float(row["pool_mean"]),
        fire=fire,
        region=fire_region(fire, results.settings.anchor_of(maps.year)),
        error=(prob[results.settings.reference] > results.settings.threshold) != fire,
        prob=prob,
        unc={method: maps.unc(method, image)[seen] for method in methods},
    )

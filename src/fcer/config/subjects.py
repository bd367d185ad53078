"""Settings as people look for them: by subject, and first those that are used most."""

from collections.abc import Iterable

from fcer.config.fields import fields

__all__ = ["FIRST", "by_subject", "first_of"]

_BEGINS = {
    "data": "where things are",
    "split": "which experiment",
    "member_epochs": "training of members",
    "views": "distillation into a student",
    "features": "what is read from a fire",
    "test_image": "evaluation",
    "study": "search over the head",
    "model": "forecasts, and the student behind them",
    "miss": "guarantees, and forecasts held to what burnt",
    "results": "report",
    "years": "synthetic fires, where no data is named",
    "detections": "fires from detections",
    "seed": "how the work is done",
}
"""Subjects, each with the first of its settings; `Config` has them in this order."""

FIRST = (
    *("results", "runs", "experiment", "ablation", "data", "source", "checkpoints", "predictions", "model", "input"),
    *("detections", "layer", "maps", "against", "online", "swap_model", "lose_channel", "host", "port", "poll", "run"),
    *("miss", "study", "storage", "trials", "objective", "out", "onnx", "gis", "assets"),
    *("year", "arch", "reference", "methods", "png", "geojson", "threshold", "anchor", "workers", "seed", "split"),
    *("years", "fires_per_year", "image_size", "fire_days", "geotiff", "work", "device", "features", "crop"),
)
"""Settings by how likely somebody is to look for them."""

_AT_FIRST = 10


def first_of(keys: Iterable[str]) -> list[str]:
    """The ten of a command's settings that people use."""
    known = set(keys)
    return [key for key in FIRST if key in known][:_AT_FIRST]


def by_subject(keys: Iterable[str]) -> dict[str, list[str]]:
    """The settings under their subjects, in the order of `Config`."""
    known, subject = set(keys), ""
    found: dict[str, list[str]] = {}
    for key in fields():
        subject = _BEGINS.get(key, subject)
        if key in known:
            found.setdefault(subject, []).append(key)
    return found

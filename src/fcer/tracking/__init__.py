"""Runs in MLflow. Only this package imports mlflow; computing never waits for it or depends on it."""

from fcer.tracking.fetch import fetch_results, has_finished_run
from fcer.tracking.links import first_page, link_to
from fcer.tracking.live import count
from fcer.tracking.replay import find_journals, log_later
from fcer.tracking.runs import TrackedRun, explain_launched, tracked_run

__all__ = [
    "TrackedRun",
    "count",
    "explain_launched",
    "fetch_results",
    "find_journals",
    "first_page",
    "has_finished_run",
    "link_to",
    "log_later",
    "tracked_run",
]

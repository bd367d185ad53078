"""Runs in MLflow. Only this package imports mlflow; computing never waits for it or depends on it."""

from fcer.tracking.runs import TrackedRun, tracked_run

__all__ = ["TrackedRun", "tracked_run"]

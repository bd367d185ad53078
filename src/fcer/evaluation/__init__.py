"""FCER on predicted maps from any model: from files to tidy tables."""

from fcer.evaluation.evaluate import evaluate, evaluate_files
from fcer.evaluation.progress import Bar, Progress, terminal_bar
from fcer.evaluation.results import Results, Settings
from fcer.evaluation.verdict import verdict

__all__ = ["Bar", "Progress", "Results", "Settings", "evaluate", "evaluate_files", "terminal_bar", "verdict"]

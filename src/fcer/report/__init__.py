"""Evaluated years as the paper's table, tests and figures, and as one page that holds them all."""

from fcer.report.join import join
from fcer.report.write import write_report

__all__ = ["join", "write_report"]

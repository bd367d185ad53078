"""Which methods each line of a plot is of, so that the page can show some methods alone."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from fcer.report.style import plot_text

__all__ = ["tag_methods"]


def tag_methods(plot: go.Figure, methods: Sequence[str]) -> None:
    """Note in each trace's `meta` the methods it shows, found by its name; what is of none of them has none.

    A line that several methods share is called by all of them, and one of a method's several lines by more words.
    """
    known: Mapping[str, str] = {shown: method for method in methods for shown in (method, plot_text(method))}
    for trace in plot.data:
        names = (trace.legendgroup or trace.name or "") if "legendgroup" in trace else (trace.name or "")
        found = [known[name] for name in (names, *names.split(", ")) if name in known]
        if found:
            trace.meta = list(dict.fromkeys(found))

"""One colour and marker for each method, wherever it is drawn: in figures and in the MLflow UI."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Look", "looks"]

# Okabe and Ito's palette, which people of any colour vision can tell apart; their yellow is too pale on white
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
_MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x")


class Look(NamedTuple):
    """How a method is drawn, wherever it is drawn."""

    colour: str
    marker: str
    dash: str


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """A look for each method, in the methods' order; past seven, colours come again with dashed lines."""
    return {
        method: Look(
            _COLOURS[place % len(_COLOURS)],
            _MARKERS[place % len(_MARKERS)],
            ("solid", "dash", "dot")[place // len(_COLOURS) % 3],
        )
        for place, method in enumerate(methods)
    }

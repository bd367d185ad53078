"""One colour and marker for each method, wherever it is drawn: in figures and in the MLflow UI."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Look", "looks"]

# Okabe and Ito's palette, which people of any colour vision can tell apart (their yellow is too pale on white); then as
# many more, since the MLflow UI draws every line solid
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444"),
    *("#882255", "#332288", "#999933", "#661100", "#44AA99", "#AA4499", "#B0A090"),
)
_MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x")
_OWN = (
    *("student", "ensemble", "entropy", "ensemble_entropy", "ensemble_mi", "random", "boundary_distance"),
    *("probability", "mc_dropout", "tta", "laplace", "density", "persistence"),
)
"""Methods that look the same beside whatever others."""


class Look(NamedTuple):
    """How a method is drawn, wherever it is drawn."""

    colour: str
    marker: str
    dash: str


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """A look for each method: our own have theirs, others take what is left, in their order.

    Past seven, markers come again with dashed lines; past fourteen, colours too.
    """
    taken = {_OWN.index(method) for method in methods if method in _OWN}
    free = (place for place in range(len(_OWN) + len(methods)) if place not in taken)
    places = {method: _OWN.index(method) if method in _OWN else next(free) for method in methods}
    return {method: _look(place) for method, place in places.items()}


def _look(place: int) -> Look:
    dash = ("solid", "dash", "dot")[place // len(_MARKERS) % 3]
    return Look(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)], dash)

"""Controls: uncertainty maps that no method made, beside which every method has to show what it knows.

A control borrows its probabilities, so it is ranked, and has no loss, no AP and no ASD of its own.
"""

from collections.abc import Sequence

__all__ = ["CONTROLS", "PROBABILITY", "UNRANKED", "split_controls"]

PROBABILITY = "probability"
"""The reference's fire probability, taken as uncertainty."""

CONTROLS = (PROBABILITY, "random", "boundary_distance", "today_distance")

UNRANKED = ("persistence",)
"""Forecasts without an uncertainty: there for AP and skill, and no rival in finding errors."""


def split_controls(methods: Sequence[str], reference: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Methods and controls; `probability`, which is always there to be made, among the latter.

    >>> split_controls(["student", "random"], reference="student")
    (('student',), ('random', 'probability'))
    """
    controls = [name for name in methods if name in CONTROLS and name != reference]
    real = tuple(name for name in methods if name not in controls)
    if PROBABILITY not in methods:
        controls.append(PROBABILITY)
    return real, tuple(controls)

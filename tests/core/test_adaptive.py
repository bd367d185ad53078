"""Adapted zones miss what was asked for in the long run, whatever the days bring."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

from fcer.core.adaptive import FARTHEST, RATE, adapted_levels


@given(
    st.lists(st.floats(-15, 15), min_size=5, max_size=60),
    st.sampled_from([0.05, 0.2, 0.5]),
    st.sampled_from([-np.inf, 1e-3, 0.5, 0.999]),
)
def test_the_mean_miss_is_what_was_asked_for_in_the_long_run(edges: list[float], miss: float, level: float):
    """Each day everything burns at one probability, an adversary's choice: missed if the level is above it."""
    found = []

    def day(edge: float):  # type: ignore[no-untyped-def]
        def missed(at: float) -> float:
            found.append(float(not np.isneginf(at) and (at == np.inf or logit(at) > edge)))
            return found[-1]

        return missed

    adapted_levels(level, miss, [day(edge) for edge in edges])
    assert abs(np.mean(found) - miss) <= (2 * FARTHEST + RATE) / (RATE * len(edges)), "whatever the days bring"


def test_a_zone_that_misses_too_much_grows_and_one_that_misses_nothing_shrinks():
    assert adapted_levels(0.5, 0.1, [lambda _: 1.0])[0] < 0.5 < adapted_levels(0.5, 0.1, [lambda _: 0.0])[0]
    assert adapted_levels(0.3, 0.1, [lambda _: float("nan")]) == [pytest.approx(0.3)]


def test_beyond_the_farthest_level_lies_the_whole_image():
    assert np.isneginf(adapted_levels(-np.inf, 0.1, [lambda _: 1.0])[0])
    assert logit(adapted_levels(-np.inf, 0.1, [lambda _: 0.0])[0]) == pytest.approx(0.1 - FARTHEST)

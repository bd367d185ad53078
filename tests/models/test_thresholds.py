import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.errors import ConfigError
from fcer.models.thresholds import settle_threshold, threshold_logit


@given(st.floats(0.1, 100), st.floats(0.001, 0.999))
def test_balanced_undoes_the_weight(weight: float, chance: float):
    """The probability that minimises the weighted loss is above the balanced threshold where fire is likelier."""
    learnt = weight * chance / (1 - chance + weight * chance)
    if not math.isclose(chance, 0.5, rel_tol=1e-9):
        assert (learnt > settle_threshold("balanced", weight)) == (chance > 0.5)


def test_a_number_stays_and_balanced_needs_a_weight():
    assert settle_threshold(0.3, None) == 0.3
    with pytest.raises(ConfigError, match=r"^threshold: balanced undoes .* not say; train it again, or give a number$"):
        settle_threshold("balanced", None)


@given(st.floats(0, 1), st.floats(-40, 40))
def test_above_the_logit_is_above_the_probability(threshold: float, logit: float):
    probability = 1 / (1 + np.exp(-logit))
    if not math.isclose(probability, threshold, rel_tol=1e-9, abs_tol=1e-12):
        assert (logit > threshold_logit(threshold)) == (probability > threshold)
    assert threshold_logit(0.5) == 0

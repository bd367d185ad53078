import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fcer.core.disagreement import (
    entropy,
    expected_entropy,
    largest_std,
    margin,
    member_variance,
    mutual_information,
    normalized_std,
    predictive_entropy,
)

members = st.integers(2, 6).flatmap(lambda n: arrays(np.float64, (n, 5), elements=st.floats(0, 1)))
MEASURES = [normalized_std, predictive_entropy, expected_entropy, mutual_information, member_variance]


@pytest.mark.parametrize("n", range(2, 9))
def test_the_largest_std_is_reached_and_never_passed(n):
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    assert corners.std(axis=1, ddof=1).max() == pytest.approx(largest_std(n))
    assert normalized_std(corners.T).max() == 1


@given(members)
def test_every_measure_lies_between_0_and_1(probs):
    for measure in MEASURES:
        values = measure(probs)
        assert values.shape == (5,)
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), measure.__name__


@given(members)
def test_uncertainty_parts_into_agreement_and_disagreement(probs):
    total = expected_entropy(probs) + mutual_information(probs)
    np.testing.assert_allclose(total, predictive_entropy(probs), atol=1e-9)


@given(arrays(np.float64, 5, elements=st.floats(0, 1)))
def test_members_that_agree_do_not_disagree(prob):
    same = np.stack([prob] * 3)
    for measure in (normalized_std, mutual_information, member_variance):
        np.testing.assert_allclose(measure(same), 0, atol=1e-7)


def test_entropy_is_scipys():
    prob = np.linspace(0, 1, 11)
    np.testing.assert_allclose(entropy(prob), stats.entropy([prob, 1 - prob], base=2), atol=1e-12)


def test_margin_and_entropy_rank_alike():
    prob = np.random.default_rng(0).random(50)
    assert stats.spearmanr(margin(prob), entropy(prob)).statistic == pytest.approx(1)


@pytest.mark.parametrize("measure", MEASURES)
def test_one_member_cannot_disagree(measure):
    with pytest.raises(ValueError, match="two members or more"):
        measure(np.zeros((1, 4)))

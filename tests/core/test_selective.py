"""Each method alone at the anchor: its own errors, and the risk of what it is surest of."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fcer.core import auprc_score, aurc_loss, auroc_score
from fcer.core.ranking import rank_counts
from fcer.core.selective import COVERAGES, own_errors, risk_coverage


def risk(error, unc) -> np.ndarray:
    return risk_coverage(rank_counts(error, unc)).risk


@given(arrays(bool, 100), arrays(np.int8, 100, elements=st.integers(0, 12)))
def test_the_mean_risk_of_a_hundred_pixels_is_their_aurc(error, score):
    # one pixel enters with each hundredth, so the mean is over every coverage there is
    if 0 < error.sum() < 100:
        assert risk(error, score / 10).mean() == pytest.approx(aurc_loss(error, score / 10), abs=1e-12)


def test_ties_count_in_expectation():
    error, unc = np.array([1, 0, 0, 1, 0]), np.array([0.1, 0.1, 0.1, 0.5, 0.9])
    orders = [[*first, 3, 4] for first in permutations([0, 1, 2])]
    expected = np.mean([np.cumsum(error[order]) for order in orders], axis=0) / np.arange(1, 6)
    np.testing.assert_allclose(risk(error, unc)[[19, 39, 59, 79, 99]], expected, rtol=1e-12)


@given(arrays(bool, st.integers(1, 40)), st.data())
def test_risk_ends_at_the_error_rate_and_depends_on_ranks_alone(error, data):
    unc = data.draw(arrays(np.float64, error.size, elements=st.sampled_from([0, 0.25, 0.5, 1])))
    found = risk(error, unc)
    assert found[-1] == pytest.approx(error.mean())
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    order = np.random.default_rng(0).permutation(error.size)
    np.testing.assert_allclose(risk(error[order], unc[order] ** 2), found, atol=1e-12)


def test_a_perfect_uncertainty_keeps_errors_out_as_long_as_it_can():
    found = risk([0] * 80 + [1] * 20, np.arange(100) / 100)
    assert (found[:80] == 0).all()
    np.testing.assert_allclose(found[80:], np.arange(1, 21) / np.arange(81, 101))
    assert COVERAGES[79] == 0.8


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_errors_of_any_precision(rng, dtype):
    wrong, unc = rng.random(500) < 0.3, rng.random(500).round(2).astype(dtype)
    own = own_errors(rank_counts(wrong, unc))
    assert (own.auroc, own.auprc) == (auroc_score(wrong, unc), auprc_score(wrong, unc))
    assert own[2:] == (wrong.mean(), 500, wrong.sum())


def test_no_errors_of_its_own_is_undefined_not_perfect():
    own = own_errors(rank_counts([0, 0], [0.1, 0.2]))
    assert np.isnan([own.auroc, own.auprc]).all()
    assert own.n_errors == 0

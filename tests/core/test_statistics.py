import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fcer.core.statistics import holm_correction, wilcoxon_test
from fcer.errors import UndefinedMetricWarning

# eighths are exact: differences are tied or zero exactly where they seem to be
scores = st.integers(1, 60).flatmap(
    lambda n: st.tuples(*[arrays(int, n, elements=st.integers(0, 16)).map(lambda a: a / 8) for _ in "ab"])
)


@pytest.fixture(autouse=True)
def undefined_is_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        yield


# scipy permutes all signs of few tied differences, which takes its time
@settings(max_examples=20)
@given(scores)
def test_the_test_is_scipys(pair):
    a, b = pair
    result = wilcoxon_test(a, b)
    delta = (a - b)[a != b]
    assert (result.n, result.n_nonzero) == (len(a), len(delta))
    assert result.median_delta == np.median(a - b)
    if len(delta):
        assert result.p == stats.wilcoxon(delta, alternative="greater").pvalue
        assert result.p_two_sided == stats.wilcoxon(delta).pvalue
        assert result.w_plus == stats.wilcoxon(delta, alternative="greater").statistic
        assert result.w_plus + result.w_minus == len(delta) * (len(delta) + 1) / 2


@settings(max_examples=20)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=55, unique=True), st.randoms())
def test_without_ties_it_is_scipys_too(sizes, random):
    delta = np.array([size * random.choice((-1, 1)) for size in sizes], float)
    result = wilcoxon_test(delta, np.zeros(len(delta)))
    assert result.p == stats.wilcoxon(delta, alternative="greater").pvalue
    assert result.p_two_sided == stats.wilcoxon(delta).pvalue


@settings(max_examples=20)
@given(scores)
def test_swapping_methods_turns_everything_round(pair):
    there, back = wilcoxon_test(*pair), wilcoxon_test(*pair[::-1])
    assert there.rank_biserial == pytest.approx(-back.rank_biserial, nan_ok=True)
    assert there.median_delta == -back.median_delta
    assert (there.w_plus, there.w_minus) == (back.w_minus, back.w_plus)
    assert there.p_two_sided == pytest.approx(back.p_two_sided)


def test_zero_differences_do_not_dilute_the_effect():
    assert wilcoxon_test([1, 1, 1, 5, 6], [1, 1, 1, 4, 4]).rank_biserial == 1


def test_pairs_with_a_nan_are_left_out():
    assert wilcoxon_test([1, np.nan, 3], [0.5, 1, np.nan]) == wilcoxon_test([1], [0.5])


def test_equal_methods_have_no_effect_to_measure():
    with pytest.warns(UndefinedMetricWarning, match="rank-biserial correlation of equal pairs"):
        result = wilcoxon_test([1, 2], [1, 2])
    assert (result.n, result.n_nonzero, result.p, result.p_two_sided) == (2, 0, 1, 1)
    assert np.isnan(result.rank_biserial)


def test_no_pairs_are_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no pairs"):
        result = wilcoxon_test([np.nan], [1])
    assert result.n == 0
    assert np.isnan([result.p, result.rank_biserial, result.median_delta]).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_helps(p_values):
    p, adjusted = np.array(p_values), holm_correction(p_values)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, p * len(p))).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert adjusted.min() == min(1, p.min() * len(p))


def test_holm_does_not_count_undefined_tests():
    np.testing.assert_allclose(holm_correction([0.02, np.nan, 0.04]), [0.04, np.nan, 0.04])

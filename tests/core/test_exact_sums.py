import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.exact_sums import add_whole, sum_of, whole_terms

some_terms = st.lists(st.floats(0, 2**28), min_size=1, max_size=60).map(np.array)


@given(some_terms, st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_order_nor_groups_change_a_bit(terms, random, groups):
    shuffled = terms.copy()
    random.shuffle(shuffled)
    parts = [whole_terms(part).sum(axis=1) for part in np.array_split(shuffled, groups)]
    assert sum_of(np.sum(parts, axis=0)) == sum_of(whole_terms(terms).sum(axis=1))


@given(some_terms)
def test_the_sum_is_the_exact_one(terms):
    assert abs(sum_of(whole_terms(terms).sum(axis=1)) - math.fsum(terms)) <= math.fsum(terms) * 2**-52 + 2**-50


def test_arrays_of_sums():
    terms = np.arange(12, dtype=np.float64).reshape(2, 3, 2) / 7
    found = sum_of(whole_terms(terms).sum(axis=1))
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, terms.sum(axis=0), rtol=1e-15)


def test_totals_hold_any_number_of_pieces():
    """The fine half of a million terms and more would not fit in 64 bits."""
    piece = whole_terms(np.array([1 - 2**-20])) * 2**18
    total, plain = np.zeros((2, 1), np.int64), np.zeros((2, 1), np.int64)
    for _ in range(16):
        add_whole(total, piece)
        plain += piece
    assert sum_of(total) == 16 * 2**18 * (1 - 2**-20)
    assert sum_of(plain) != sum_of(total), "else this tests nothing"

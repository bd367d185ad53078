import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.codes import CODE_VALUES, N_CODES, codes_of, rounded_codes

HALVES = np.arange(np.float16(1).view(np.uint16) + 1, dtype=np.uint16).view(np.float16)
"""Every number of half precision from 0 to 1, ascending."""

some_numbers = st.lists(st.floats(0, 1, width=64), min_size=1, max_size=40).map(np.array)


def test_codes_fit_in_16_bits():
    assert N_CODES < 1 << 16
    assert codes_of(np.array([1.0])).tolist() == [N_CODES - 1]
    assert codes_of(np.array([1.0])).dtype == np.uint16


def test_every_half_precision_number_has_a_code_of_its_own_in_order():
    assert HALVES.size == 15361
    codes = codes_of(HALVES).astype(int)
    assert (np.diff(codes) > 0).all()
    np.testing.assert_array_equal(CODE_VALUES[codes], HALVES.astype(np.float64))
    # in whatever precision they are written
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(codes_of(HALVES.astype(dtype)), codes)
        assert rounded_codes(HALVES.astype(dtype), codes_of(HALVES)).size == 0


def test_every_code_is_that_of_its_value():
    np.testing.assert_array_equal(codes_of(CODE_VALUES), np.arange(N_CODES))
    assert (np.diff(CODE_VALUES) > 0).all()


def test_minus_zero_is_zero():
    for dtype in (np.float16, np.float32, np.float64):
        assert codes_of(np.array([-0.0], dtype=dtype)).tolist() == [0]


def test_tiny_numbers_are_zero():
    assert codes_of(np.array([2.0**-33, 2.0**-31])).tolist() == [0, 1]


@given(some_numbers)
def test_codes_are_in_the_order_of_the_numbers(numbers):
    for dtype in (np.float16, np.float32, np.float64):
        ascending = np.sort(numbers.astype(dtype))
        assert (np.diff(codes_of(ascending).astype(int)) >= 0).all()


@given(some_numbers)
def test_a_code_stands_for_a_number_nearby(numbers):
    values = CODE_VALUES[codes_of(numbers)]
    assert (np.abs(values - numbers) <= numbers * 2.0**-12 * (1 + 1e-6) + 2.0**-32).all()


@given(some_numbers)
def test_rounded_codes_are_those_that_stand_for_something_else(numbers):
    codes = codes_of(numbers)
    expected = {code for code, number in zip(codes.tolist(), numbers, strict=True) if CODE_VALUES[code] != number}
    assert set(rounded_codes(numbers, codes).tolist()) == expected

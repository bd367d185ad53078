"""Arrays as text: what goes in comes out, and whatever else comes in is one sentence."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fcer.errors import InputError
from fcer.runtime.npy_text import from_text, to_text

NUMBERS = st.sampled_from(["<f2", "<f4", ">f4", "<f8", "|u1", "<i4"])


@given(arrays.arrays(NUMBERS, arrays.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=4)), st.booleans())
def test_what_goes_in_comes_out(array: np.ndarray, fortran: bool):
    given_ = np.asfortranarray(array) if fortran else array
    found = from_text(to_text(given_), "x")
    assert found.dtype == array.dtype and found.shape == array.shape
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@given(st.data())
def test_damage_is_one_sentence_or_other_numbers(data: st.DataObject):
    file = bytearray(base64.b64decode(to_text(np.ones((2, 3), np.float16))))
    for place in data.draw(st.lists(st.integers(0, len(file) - 1), min_size=1, max_size=6)):
        file[place] = data.draw(st.sampled_from(b"()[]{}'\", \n-0129fOV<:\xff\x00"))
    text = base64.b64encode(file[: data.draw(st.integers(0, len(file)))]).decode()
    try:
        assert from_text(text, "x").nbytes <= len(file)
    except InputError as error:
        assert str(error).startswith("x: ") and "\n" not in str(error)


def header(text: str, after: bytes = bytes(8)) -> str:
    file = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + after
    return base64.b64encode(file).decode()


def empty(shape: str) -> str:
    return header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}", b"")


def described(descr: str, shape: str) -> str:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (described("'<f4'", "(1000000, 1000000)"), "promises float32 of shape (1000000, 1000000), but 8 bytes"),
        (described("'<f4'", "(-1, -2)"), "promises float32 of shape (-1, -2), but 8 bytes"),
        (described("'<f4'", "(3,)"), "but 8 bytes of numbers follow; send the whole file"),
        (described("'<f4'", "(1,)"), "but 8 bytes"),
        (described("'<f4'", "(True, 2)"), "shape (True, 2)"),
        (described("'<f4'", f"(2, {'1, ' * 70})"), "is not that of an array; send days"),
        (empty("(0, 1000000000000000000000000000000)"), "is not that of an array; send days"),
        (described("'|O'", "(1,)"), "holds object, not numbers; save float32 or float16"),
        (described("[('a', '<f4')]", "(2,)"), "not numbers"),
        (described("'V0'", "(3,)"), "not numbers"),
        (described("'<f4'", "2"), "this is not a .npy file of numbers; write one with numpy.save"),
        (described("'nothing'", "(2,)"), "this is not a .npy file"),
        (header("-" * 9000 + "1"), "this is not a .npy file"),
        (header("(" * 900), "this is not a .npy file"),
        (base64.b64encode(b"PK\x03\x04 an archive").decode(), "this is not a .npy file"),
        ("", "this is not a .npy file"),
        ("é", "this is not base64"),
        ("AAA", "this is not base64, or it was cut short; encode the whole .npy file, without line breaks"),
        ("AAAA\nAAAA", "without line breaks"),
    ],
)
def test_what_is_no_array_is_one_sentence(text: str, sentence: str):
    with pytest.raises(InputError) as error:
        from_text(text, "x")
    assert sentence in str(error.value)


def test_it_is_a_quarter_of_what_json_is():
    days = np.random.default_rng(0).normal(size=(1, 5, 7, 32, 32)).astype(np.float32)
    assert 3.5 * len(to_text(days)) < len(json.dumps(days.tolist()))

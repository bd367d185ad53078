"""One conversion for YAML, flags and headers of files."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.config.conversion import converted, filled, from_text, hints
from fcer.config.fields import fields
from fcer.config.settings import Config


@dataclasses.dataclass(frozen=True)
class Header:
    """Every kind of field that a header has."""

    name: str
    count: int
    share: float
    whole: bool
    years: tuple[int, ...]
    means: tuple[float, ...]
    best: float | None
    newer: str | None = None


finite = st.floats(allow_nan=False, allow_infinity=False)
headers = st.builds(
    Header,
    name=st.text(),
    count=st.integers(),
    share=finite,
    whole=st.booleans(),
    years=st.lists(st.integers()).map(tuple),
    means=st.lists(finite).map(tuple),
    best=st.none() | finite,
    newer=st.none() | st.text(),
)


@given(headers)
def test_what_json_keeps_of_an_object_is_that_object(header: Header):
    kept = json.loads(json.dumps(dataclasses.asdict(header)))
    read = filled(Header, kept)
    assert read == header
    assert all(type(getattr(read, name)) is type(getattr(header, name)) for name in kept)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(value=anything, key=st.sampled_from(sorted(fields())))
def test_any_value_is_converted_without_guessing_or_refused_in_words(value: object, key: str):
    try:
        found = converted(value, hints(Config)[key])
    except ValueError as error:
        assert ", but should be " in str(error) and len(str(error)) < 400
        return
    if isinstance(found, Path):
        return
    assert (list(found) if isinstance(found, tuple) else found) == value
    assert isinstance(found, bool) == isinstance(value, bool)
    assert not isinstance(found, float) or math.isfinite(found)


@given(values=st.dictionaries(st.sampled_from([*hints(Header), "other"]), anything))
def test_whatever_a_header_holds_is_an_object_or_a_sentence(values: dict[str, object]):
    try:
        assert isinstance(filled(Header, values), Header)
    except ValueError as error:
        assert "missing or unknown" in str(error) or "but should be" in str(error)


def test_what_is_newer_than_a_file_takes_its_default_and_nothing_else_does():
    old = {"name": "a", "count": 1, "share": 0.5, "whole": True, "years": [], "means": [], "best": None}
    assert filled(Header, old).newer is None
    with pytest.raises(ValueError, match=r"^best, more missing or unknown$"):
        filled(Header, {**{name: value for name, value in old.items() if name != "best"}, "more": 1})


@given(st.lists(st.integers(0, 39), min_size=1))
def test_lists_can_be_typed_in_three_ways(items: list[int]):
    words = [str(item) for item in items]
    for typed in (words, [",".join(words)], " ".join(words)):
        assert from_text(typed, tuple[int, ...]) == items


@pytest.mark.parametrize("value", ["x" * 1000, "a\0b"])
def test_names_that_no_file_can_have_are_kept_for_the_checks(value: str):
    assert from_text([value], tuple[Path, ...]) == [value]


def test_numbers_beyond_every_float_and_homes_of_nobody_end_in_words():
    with pytest.raises(ValueError, match="should be a number"):
        converted(10**400, float)
    assert converted("~nobody-is-called-so/x", Path) == Path("~nobody-is-called-so/x")

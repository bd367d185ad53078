"""Files from anywhere are refused in a sentence before they are built."""

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fcer.config import bounded
from fcer.config.bounded import parse_json, read_yaml
from fcer.config.resolve import resolve
from fcer.errors import ConfigError
from fcer.search.space import read_space


def bomb(levels: int = 9, width: int = 9) -> str:
    """Each line repeats the one before `width` times: 9 lines stand for 9^9 values."""
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * width)}]" for k in range(1, levels)]
    return "\n".join(lines)


def ladder(levels: int) -> str:
    """No alias repeats much, but each goes one deeper."""
    return "\n".join(["a0: &a0 [x]", *(f"a{k}: &a{k} [*a{k - 1}]" for k in range(1, levels))])


WRONG = {
    "alias bomb": (bomb(), "values once its aliases are written out"),
    "radii": (f"{bomb()}\nradii: *a8", "values once its aliases are written out"),
    "ladder": (ladder(100), "nested more than 32 deep"),
    "deep list": ("a: " + "[" * 100_000, "nested more than 32 deep"),
    "deep mapping": ("{a: " * 5000, "nested more than 32 deep"),
    "deep block": ("\n".join(" " * k + "a:" for k in range(500)), "nested more than 32 deep"),
    "itself": ("a: &a [1, *a]", "`*a` stands for nothing above it"),
    "many": ("a: [" + "1," * 5000 + "]", "more than 4000 values"),
    "digits": ("seed: 0x" + "f" * 9000, "a value of 9002 characters"),
    "large": ("#" * (1 << 21), "larger than 1 MiB"),
    "date": ("seed: 2020-13-45", "a value cannot be read"),
    "bool": ("seed: !!bool maybe", "a value cannot be read"),
    "timestamp": ("seed: !!timestamp soon", "a value cannot be read"),
    "int": ("seed: !!int ''", "a value cannot be read"),
    "object": ("seed: !!python/object/apply:os.getcwd []", "not valid YAML"),
    "list as key": ("? [1, 2]\n: 3", "a key is no name"),
    "control": ("seed: \x07", "not valid YAML"),
}


READERS = {"config": resolve, "space": read_space}
CASES = [
    *((name, reader) for name in WRONG for reader in READERS if name != "many"),
    ("many", "config"),  # both read YAML by one function
]


@pytest.mark.parametrize(("name", "reader"), CASES)
def test_what_would_not_fit_is_refused_before_it_is_built(
    name: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text, sentence = WRONG[name]
    if name == "many":  # fewer than are allowed, which take seconds where memory is watched
        monkeypatch.setattr(bounded, "_MOST_NODES", 4000)
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError) as error:
            READERS[reader](file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(error.value).startswith(str(file)) and sentence in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    assert peak < 100e6


def test_bytes_that_are_no_text_and_folders(tmp_path: Path):
    (tmp_path / "bytes.yaml").write_bytes(b"seed: \xff\xfe")
    for file, sentence in ((tmp_path / "bytes.yaml", "a value cannot be read"), (tmp_path, "cannot be read")):
        with pytest.raises(ConfigError, match=sentence):
            read_yaml(file)
    with pytest.raises(ConfigError, match="no such file; check the path"):
        read_yaml(tmp_path / "none.yaml")


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=5), plain, max_size=5))
def test_what_is_small_is_read_as_it_was_written(tmp_path_factory, content: dict[str, object]):
    file = tmp_path_factory.getbasetemp() / "small.yaml"
    shared = [content, content]
    file.write_text(yaml.safe_dump({"with aliases": shared}))
    assert read_yaml(file) == {"with aliases": shared}
    assert parse_json(json.dumps(shared)) == shared


@given(st.integers(1, 60), st.sampled_from(["[", '{"a":']), st.text(alphabet='[]{}"\\', max_size=20))
def test_json_is_read_down_to_a_depth_whatever_its_texts_hold(depth: int, opening: str, noise: str):
    text = opening * depth + json.dumps(noise) + {"[": "]", '{"a":': "}"}[opening] * depth
    if depth > 32:
        with pytest.raises(ValueError, match="nested more than 32 deep"):
            parse_json(text)
    else:
        assert parse_json(text) == json.loads(text) == parse_json(text.encode())


@given(st.text(alphabet='[]{}",:\\a1 ', max_size=60))
def test_any_text_is_json_or_a_value_error(text: str):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            parse_json(text)
    else:
        assert parse_json(text) == expected


def test_json_that_is_too_long():
    assert parse_json("[1]", largest=3) == [1]
    with pytest.raises(ValueError, match="4 characters of JSON; at most 3 are read"):
        parse_json("[12]", largest=3)
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * 10_000_000)

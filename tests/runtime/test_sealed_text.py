"""JSON and CSV of our own: every flipped bit is found, and what versions before wrote is read."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fcer.errors import FcerWarning
from fcer.runtime.sealed_text import (
    is_readable,
    read_sealed_csv,
    read_sealed_json,
    write_sealed_csv,
    write_sealed_json,
)

CONTENT = {"epochs": [{"epoch": 1, "loss": 0.25}, {"epoch": 2, "loss": 0.125}]}
TABLE = pd.DataFrame({"fire": ["a", "=b", "c\rd"], "auroc": [0.5, 0.25, float("nan")], "n": [1, 2, 3]})
TEXTS: Any = {"dtype": {"fire": str}, "keep_default_na": False, "na_values": {"auroc": [""]}}


def test_what_was_written_is_read(tmp_path: Path):
    write_sealed_json(tmp_path / "a.json", CONTENT)
    assert read_sealed_json(tmp_path / "a.json") == CONTENT
    write_sealed_csv(tmp_path / "a.csv", TABLE)
    pd.testing.assert_frame_equal(
        read_sealed_csv(tmp_path / "a.csv", **TEXTS), TABLE.replace("=b", "'=b"), check_dtype=False
    )


def test_what_versions_before_wrote_is_read(tmp_path: Path):
    (tmp_path / "a.json").write_text(json.dumps(CONTENT["epochs"]))
    assert read_sealed_json(tmp_path / "a.json") == CONTENT["epochs"]
    TABLE[["auroc", "n"]].to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_sealed_csv(tmp_path / "a.csv"), TABLE[["auroc", "n"]])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7), st.booleans())
def test_every_flipped_bit_is_found(tmp_path: Path, where: float, bit: int, is_csv: bool):
    path = tmp_path / ("a.csv" if is_csv else "a.json")
    write_sealed_csv(path, TABLE) if is_csv else write_sealed_json(path, CONTENT)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        read = read_sealed_csv(path, **TEXTS) if is_csv else read_sealed_json(path)
    except ValueError:
        return
    # such as the quotes around a cell that needs none
    assert read.equals(TABLE.replace("=b", "'=b")) if is_csv else read == CONTENT


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{", "\xff"])
def test_what_is_none_is_named_and_made_again(tmp_path: Path, text: str):
    path = tmp_path / "a.json"
    assert not is_readable(path, read_sealed_json) and is_readable(path, read_sealed_json, needed=False)
    path.write_text(text, encoding="latin-1")
    with pytest.warns(FcerWarning, match=r"a\.json: .*; made again"):
        assert not is_readable(path, read_sealed_json)

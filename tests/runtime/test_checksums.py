"""Sealed files: every flipped bit is found, whatever the format around the seal."""

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from fcer.runtime.checksums import UNSEALED, Damaged, check_once, seal, verify


def safetensors(path: Path) -> None:
    weights = {"a": np.arange(50, dtype=np.float32), "b": np.ones((3, 4), np.float16)}
    save_file(weights, path, metadata={"fcer": json.dumps({"a": 1, "checksum": UNSEALED})})


def text(path: Path) -> None:
    path.write_text(json.dumps({"checksum": UNSEALED, "content": list(range(30))}))


def hdf5(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        file["data"] = np.arange(30)
    with path.open("r+b") as content:
        content.write(UNSEALED.encode())


FORMATS = [safetensors, text, hdf5]


@pytest.mark.parametrize("write", FORMATS)
def test_a_sealed_file_is_still_one(tmp_path: Path, write: Callable[[Path], None]):
    path = tmp_path / "file"
    write(path)
    size = path.stat().st_size
    seal(path)
    assert verify(path) and path.stat().st_size == size
    if write is safetensors:
        with safe_open(path, framework="np") as file:
            assert json.loads(file.metadata()["fcer"])["checksum"] != UNSEALED
            assert file.get_tensor("a").tolist() == list(range(50))
    elif write is text:
        assert json.loads(path.read_text())["content"] == list(range(30))
    else:
        with h5py.File(path) as file:
            assert file["data"][:].tolist() == list(range(30))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(write=st.sampled_from(FORMATS), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(tmp_path: Path, write: Callable[[Path], None], where: float, bit: int):
    path = tmp_path / "file"
    write(path)
    seal(path)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        whole = verify(path)
    except Damaged as error:
        assert str(path) in str(error)
    else:
        assert not whole, "at best the seal itself is gone"


def test_a_file_without_room_is_not_sealed(tmp_path: Path):
    path = tmp_path / "file"
    for content in (b"", b"anything"):
        path.write_bytes(content)
        assert not verify(path)
    with pytest.raises(ValueError, match="no room for a checksum"):
        seal(path)


def test_one_that_was_never_sealed_is_damaged(tmp_path: Path):
    text(tmp_path / "file")
    with pytest.raises(Damaged):
        verify(tmp_path / "file")


def test_a_sealed_file_is_checked_again_when_its_state_changes(tmp_path: Path):
    path = tmp_path / "shard"
    text(path)
    seal(path)
    check_once(path)
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(Damaged):
            check_once(path)

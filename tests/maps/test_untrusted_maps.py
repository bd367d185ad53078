"""Predicted maps from anywhere: no file makes us read another, and work is bounded by the bytes there are."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fcer.errors import PredictionsError
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps

SHAPE = (20, 6, 7)


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    maps = {f"student_{kind}": rng.random(SHAPE, np.float32) for kind in ("prob", "unc")}
    return {"y": (rng.random(SHAPE) < 0.2).astype(np.uint8), **maps}


def hdf5(path: Path, **others: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in (arrays() | others).items():
            file[name] = array
    return path


def refusal(path: Path) -> str:
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    with pytest.raises(PredictionsError):
        open_maps(path, values=False)
    said = str(refused.value)
    assert said.startswith(f"{path}: ") and "\n" not in said and refused.value.exit_code == 2
    return said.removeprefix(f"{path}: ")


def external_storage(file: h5py.File, name: str, other: Path) -> None:
    file.create_dataset(name, SHAPE, "<f4", external=str(other))


def external_link(file: h5py.File, name: str, other: Path) -> None:
    file[name] = h5py.ExternalLink(other, name)


def virtual(file: h5py.File, name: str, other: Path) -> None:
    layout = h5py.VirtualLayout(SHAPE, "<f4")
    layout[:] = h5py.VirtualSource(other, name, SHAPE)
    file.create_virtual_dataset(name, layout)


def missing_virtual(file: h5py.File, name: str, other: Path) -> None:
    virtual(file, name, other.with_name("nowhere.h5"))


def soft_link(file: h5py.File, name: str, other: Path) -> None:
    file[name] = h5py.SoftLink("/y")


def cycle(file: h5py.File, name: str, other: Path) -> None:
    file[name] = h5py.SoftLink(f"/{name}")


@pytest.mark.parametrize(
    ("replace", "problem"),
    [
        (external_storage, "has its numbers in other files"),
        (external_link, "is a link"),
        (virtual, "has its numbers in other files"),
        (missing_virtual, "has its numbers in other files"),
        (soft_link, "is a link"),
        (cycle, "is a link"),
    ],
)
def test_no_file_makes_us_read_another(tmp_path: Path, replace: Callable[..., None], problem: str):
    path = hdf5(tmp_path / "predictions_2018.h5")
    other = Path(shutil.copy(path, tmp_path / "other.h5"))
    with h5py.File(path, "r+") as file:
        del file["student_unc"]
        replace(file, "student_unc", other)
    assert refusal(path) == f"student_unc {problem}; store all arrays at the top, with their numbers in this file"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: file.create_dataset("student_unc", data=h5py.Empty("f4")), "student_unc is empty"),
        (lambda file: file.create_dataset("student_unc", SHAPE, [("a", "f4"), ("b", "f4")]), "student_unc holds [('a'"),
        (lambda file: file.create_dataset("student_unc", SHAPE, h5py.ref_dtype), "student_unc holds object"),
        (
            lambda file: file.create_dataset("student_unc", (10**7, 1000, 1000), "f4", chunks=(1, 100, 100)),
            "student_unc should have 40000000000000 bytes, but 0 are stored",
        ),
        (
            lambda file: file.create_dataset("fire_id", (10**12,), h5py.string_dtype(), chunks=(1000,)),
            "fire_id should have 8000000000000 bytes, but 0 are stored",
        ),
    ],
)
def test_what_is_no_array_of_maps(tmp_path: Path, make: Callable[[h5py.File], None], problem: str):
    path = hdf5(tmp_path / "predictions_2018.h5")
    with h5py.File(path, "r+") as file:
        del file["student_unc"]
        make(file)
    assert refusal(path).startswith(problem)


@pytest.mark.slow
def test_constant_maps_pack_tightly_and_are_read(tmp_path: Path):
    """The bound on what bytes can stand for lets the tightest file that we write through."""
    stacks = {"y": np.zeros((64, 300, 300), np.uint8)} | {
        f"m_{k}": np.zeros((64, 300, 300), np.float64) for k in ("prob", "unc")
    }
    stacks["y"][0, 0, 0] = 1
    np.savez_compressed(tmp_path / "predictions_2018.npz", **stacks)
    with h5py.File(tmp_path / "predictions_2018.h5", "w") as file:
        for name, stack in stacks.items():
            file.create_dataset(name, data=stack, compression="gzip", compression_opts=9, chunks=(64, 300, 300))
    for suffix in (".npz", ".h5"):
        with open_maps(tmp_path / f"predictions_2018{suffix}") as maps:
            assert maps.shape == (64, 300, 300)


def npz(path: Path, **others: bytes) -> Path:
    np.savez(path, **arrays())
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in others.items():
            archive.writestr(f"{name}.npy", content)
    return path


def header(descr: str, shape: str, after: bytes = b"") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + after


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            header("'<U8'", "(1000000000000,)"),
            "fire_id.npy should be <U8 of shape (1000000000000,), but 0 bytes follow",
        ),
        (header("'<U99999999'", "(20,)"), "should be <U99999999 of shape (20,)"),
        (header("'<U999999999'", "(20,)"), "this is not a .npy array"),
        (header("'<i8'", "(-1,)"), "should be int64 of shape (-1,)"),
        (header("'<i8'", "(20,"), "this is not a .npy array"),
        (b"\x93NUMPY\x01\x00\x00\x23" + b"-" * 8960 + b"1", "this is not a .npy array"),
        (b"none of it", "this is not a .npy array"),
        (b"", "this is not a .npy array"),
    ],
)
def test_a_header_is_not_believed(tmp_path: Path, content: bytes, problem: str):
    assert problem in refusal(npz(tmp_path / "predictions_2018.npz", fire_id=content))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice(tmp_path: Path):
    path = npz(tmp_path / "predictions_2018.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y.npy", archive.read("y.npy"))
    assert refusal(path) == "y.npy is in it more than once; write each array once"


def marked(path: Path, local: int, central: int, value: bytes) -> Path:
    """The file with a field of every member's two headers overwritten."""
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        start = content.find(signature)
        while start >= 0:
            content[start + offset : start + offset + 2] = value
            start = content.find(signature, start + 4)
    path.write_bytes(content)
    return path


def test_encryption_and_unknown_compression(tmp_path: Path):
    path = tmp_path / "predictions_2018.npz"
    assert refusal(marked(npz(path), 6, 8, b"\x01\x00")) == "it is encrypted; write it with numpy.savez"
    for method in (b"\x63\x00", b"\x0c\x00", b"\x0e\x00"):  # nobody's, bzip2, LZMA
        said = refusal(marked(npz(path), 8, 10, method))
        assert said == "compressed as numpy never does; write it with numpy.savez_compressed"


def test_damaged_compression(tmp_path: Path):
    path = tmp_path / "predictions_2018.npz"
    np.savez_compressed(path, **arrays())
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match="truncated or damaged"):
        open_maps(path)


def test_a_nul_in_a_path():
    with pytest.raises(PredictionsError, match="no such file"):
        open_maps("a\0b.npz")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(["stored.npz", "packed.npz", "theirs.h5", "ours.h5"]))
def test_any_damage_is_one_sentence(tmp_path: Path, data: st.DataObject, kind: str):
    sound = tmp_path / f"2018_{kind}"
    if not sound.exists():
        stacks = arrays() | {"fire_id": np.array(["fire"] * 20), "year": np.array(2018)}
        if kind == "ours.h5":
            write_maps(sound, PredictedMaps.from_arrays(stacks))
        elif kind == "theirs.h5":
            hdf5(sound, fire_id=np.array([b"fire"] * 20))
        else:
            (np.savez if kind == "stored.npz" else np.savez_compressed)(sound, **stacks)
    content = bytearray(sound.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, 2047), st.integers(len(content) - 2000, len(content) - 1)))
        content[place] = data.draw(st.integers(0, 255))
    path = sound.with_name("predictions_2018" + sound.suffix)
    path.write_bytes(content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))])
    try:
        open_maps(path).close()
    except PredictionsError as error:
        assert str(path) in str(error) and "\n" not in str(error)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(suffix=st.sampled_from([".npz", ".h5"]), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_of_our_own_files_is_found(tmp_path: Path, suffix: str, where: float, bit: int):
    path, stacks = tmp_path / f"predictions_2018{suffix}", arrays() | {"fire_id": np.array(["fire"] * 20)}
    write_maps(path, PredictedMaps.from_arrays(stacks, year=2018))
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        with open_maps(path) as maps:  # a bit that says nothing, such as one of a time stamp
            assert maps.methods == ("student",) and maps.fire_id.tolist() == ["fire"] * 20 and maps.year == 2018
            assert all(np.array_equal(maps.arrays[name][:], stacks[name]) for name in maps.arrays)
    except PredictionsError as error:
        assert str(error).startswith(f"{path}: ")

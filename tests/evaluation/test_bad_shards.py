"""Bad values and damaged files, met in the middle of a shard: one sentence that names the images, nothing left open."""

import os
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from fcer.errors import PredictionsError
from fcer.evaluation import evaluate, evaluate_files, shards
from fcer.maps.npz_stream import write_npz_array
from fcer.maps.predicted_maps import PredictedMaps, open_maps
from shard_cases import IMAGES, fire_arrays, is_open, lazy_arrays, written

OPTIONS = {"engine": "shards", "bootstrap": 10, "radii": []}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "_IMAGES", IMAGES)


@pytest.fixture(params=[".npz", ".h5"])
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


def refusal(path: Path, **options) -> str:
    """What the evaluation says of a file, of which it leaves nothing open."""
    with pytest.raises(PredictionsError) as refused:
        evaluate_files([path], **{**OPTIONS, **options})
    assert shards._Opened.maps is None
    assert not is_open(path)
    return str(refused.value)


def with_value(name: str, value: float, image: int = 12) -> dict[str, np.ndarray]:
    stacks = fire_arrays()
    if name == "y":
        stacks["y"] = stacks["y"].astype(np.int16)
    stacks[name][image, 3, 4] = value
    return stacks


def fire_in_padding() -> dict[str, np.ndarray]:
    stacks = fire_arrays(padding=True)
    stacks["size"][12] = 20, 20
    stacks["y"][12, 3, 20] = 1
    return stacks


def without_fire_around(stacks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    stacks["y"][10:15] = 0
    return stacks


BAD = {
    "NaN": (with_value("student_prob", np.nan), ", images 10 to 14: student_prob holds NaN"),
    "above 1": (with_value("ensemble_prob", 2.0), ", images 10 to 14: ensemble_prob holds 2"),
    "NaN among uncertainties": (with_value("student_unc", np.nan), ", images 10 to 14: student_unc holds NaN"),
    "NaN in a shard without fire": (
        without_fire_around(with_value("student_unc", np.nan)),
        ", images 10 to 14: student_unc holds NaN",
    ),
    "below 0": (with_value("ensemble_unc", -0.5, 16), ", images 15 to 17: ensemble_unc holds -0.5"),
    "y not binary": (with_value("y", 255), ", images 10 to 14: y holds 255"),
    "fire in the padding": (fire_in_padding(), ": y has fire in image 12 beyond its size"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_is_refused_with_its_images(tmp_path, suffix, case):
    stacks, found = BAD[case]
    path = written(tmp_path, suffix, stacks)
    said = refusal(path)
    assert said.startswith(f"{path}{found}; ") and "\n" not in said
    if case == "NaN":
        assert refusal(path, workers=2) == said


@pytest.mark.parametrize("arrays", [dict, lazy_arrays])
def test_a_bad_value_in_memory(arrays):
    stacks = with_value("student_unc", np.nan)
    maps = PredictedMaps.from_arrays(arrays(stacks), year=2018, source="theirs", values=False)
    with pytest.raises(PredictionsError, match=r"^theirs, images 10 to 14: student_unc holds NaN; give every pixel"):
        evaluate(maps, **OPTIONS)


def test_bad_values_of_several_shards_are_counted(tmp_path):
    stacks = with_value("student_prob", np.nan)
    stacks["student_prob"][0, 0, 0] = 7
    path = written(tmp_path, ".npz", stacks)
    assert refusal(path) == (
        "segmentation 2018: 2 of 4 failed, the rest is complete; the first: "
        f"{path}, images 0 to 4: student_prob holds 7; give every pixel a value from 0 to 1"
    )


@pytest.mark.parametrize("engine", ["exact", "shards"])
def test_a_year_without_any_fire(tmp_path, suffix, engine):
    stacks = fire_arrays()
    stacks["y"][:] = 0
    path = written(tmp_path, suffix, stacks)
    assert refusal(path, engine=engine) == f"{path}: no image has fire; FCER needs fire in y"


def test_an_array_that_ends_early(tmp_path):
    path = tmp_path / "predictions_2018.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, stack in fire_arrays().items():
            kept = stack[:-3] if name == "student_prob" else stack
            write_npz_array(archive, name, stack.shape, stack.dtype, [kept])
    assert refusal(path) == (
        f"{path}: truncated or damaged (student_prob.npy should be float32 of shape (18, 27, 29), "
        "but 46980 bytes follow); write it again"
    )


@pytest.mark.parametrize("change", ["written anew", "cut off", "gone"])
def test_a_file_that_changes_under_way(tmp_path, suffix, change):
    path = written(tmp_path, suffix, fire_arrays())
    with open_maps(path, values=False) as maps:
        content = path.read_bytes()
        path.unlink()
        if change == "written anew":
            os.utime(written(tmp_path, suffix, fire_arrays(seed=1)), (1, 1))  # clocks of files may be slow
        elif change == "cut off":
            path.write_bytes(content[: len(content) // 2])
        with pytest.raises(PredictionsError) as refused:
            evaluate(maps, **OPTIONS)
    said = "it was written anew while it was being evaluated; evaluate it again"
    if change == "gone":
        said = "cannot be read (No such file or directory); see that it is still there"
    assert str(refused.value).endswith(f"; the first: {path}: {said}")
    assert shards._Opened.maps is None


def damage(path: Path, pixels: np.ndarray) -> None:
    """Write other values from 0 to 1 over some that a file holds as they are."""
    content = path.read_bytes()
    assert content.count(pixels.tobytes()) == 1
    path.write_bytes(content.replace(pixels.tobytes(), (1 - pixels).tobytes()))


@pytest.mark.parametrize("name", ["student_prob", "ensemble_unc"])
@pytest.mark.parametrize("last_fire", [17, 12])
def test_damage_to_an_npz_file_is_noticed(tmp_path, name, last_fire):
    stacks = fire_arrays()
    stacks["y"][last_fire, 3, 4] = 1
    stacks["y"][last_fire + 1 :] = 0
    path = written(tmp_path, ".npz", stacks)
    damage(path, stacks[name][2, 5:9])
    said = refusal(path)
    assert said.startswith(f"{path}, images ") and f"truncated or damaged (Bad CRC-32 for file '{name}.npy')" in said


def zero_a_chunk(path: Path) -> None:
    with h5py.File(path) as store:
        chunk = store["student_prob"].id.get_chunk_info(12)
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(bytes(chunk.size))


def test_damage_to_an_hdf5_file_of_ours_is_noticed_by_its_checksum(tmp_path):
    path = written(tmp_path, ".h5", fire_arrays())
    zero_a_chunk(path)
    said = refusal(path)
    assert said.startswith(f"{path}: its bytes have changed since it was written (") and said.endswith(
        "; write it again"
    )


def test_damage_to_an_hdf5_file_without_a_checksum(tmp_path):
    """Another program's file is read until a chunk cannot be."""
    ours = written(tmp_path, ".h5", fire_arrays())
    path = tmp_path / "others_2018.h5"
    with h5py.File(ours) as store, h5py.File(path, "w") as other:
        for name in store:
            store.copy(name, other)
    zero_a_chunk(path)
    said = refusal(path)
    assert said.startswith(f"{path}, images 10 to 14: truncated or damaged (") and said.endswith("; write it again")

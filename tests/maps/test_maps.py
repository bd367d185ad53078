import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from fcer.errors import PredictionsError
from fcer.maps import predicted_maps as maps_module
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps


def good_arrays(n_images: int = 20) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = n_images, 6, 7
    maps = {
        f"{name}_{kind}": rng.random(shape, np.float32) for name in ("student", "other") for kind in ("prob", "unc")
    }
    return {"y": (rng.random(shape) < 0.2).astype(np.uint8), **maps}


def write_file(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npz":
        np.savez_compressed(path, **arrays)
    else:
        with h5py.File(path, "w") as store:
            for name, array in arrays.items():
                store[name] = array.astype(h5py.string_dtype()) if array.dtype.kind == "U" else array
    return path


@pytest.fixture(params=[".npz", ".h5"])
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["in memory", "in slices"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "in slices":
        monkeypatch.setattr(maps_module, "_IN_MEMORY_BYTES", 0)
    return request.param


def test_what_is_written_is_read(tmp_path, suffix, size):
    arrays = good_arrays() | {"fire_id": np.array([f"fire_{i // 3}" for i in range(20)]), "date": np.arange(20)}
    path = tmp_path / f"predictions_2018{suffix}"
    write_maps(path, PredictedMaps.from_arrays(arrays, year=2018))
    with open_maps(path) as maps:
        assert (maps.year, maps.methods, maps.shape) == (2018, ("student", "other"), (20, 6, 7))
        assert maps.fire_id.tolist() == arrays["fire_id"].tolist()
        assert maps.date.tolist() == [str(i) for i in range(20)]
        for _ in range(2):  # a second time from the front
            for images in maps.blocks():
                np.testing.assert_array_equal(maps.fire(images), arrays["y"][images] == 1)
                np.testing.assert_array_equal(maps.prob("other", images), arrays["other_prob"][images])
                np.testing.assert_array_equal(maps.unc("student", images), arrays["student_unc"][images])
        np.testing.assert_array_equal(maps.unc("student", slice(18, 20)), arrays["student_unc"][18:])
        np.testing.assert_array_equal(maps.unc("student", slice(3, 5)), arrays["student_unc"][3:5])


def sized_arrays() -> dict[str, np.ndarray]:
    """Images of 5 rows, the last one of 6; the first half has 7 columns, the others 4."""
    arrays = good_arrays()
    arrays["size"] = np.array([(5, 7)] * 10 + [(5, 4)] * 9 + [(6, 7)])
    for image, (rows, columns) in zip(arrays["y"], arrays["size"], strict=True):
        image[rows:] = image[:, columns:] = 0
    return arrays


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32])
def test_sizes_are_written_and_read(tmp_path, suffix, size, dtype):
    arrays = sized_arrays()
    maps = PredictedMaps.from_arrays(arrays | {"size": arrays["size"].astype(dtype)}, year=2018)
    path = tmp_path / f"predictions_2018{suffix}"
    write_maps(path, maps)
    with open_maps(path) as maps:
        assert maps.size.dtype == np.int64 and maps.size.tolist() == arrays["size"].tolist()
        assert maps.n_pixels == 10 * 35 + 9 * 20 + 42
        assert maps.methods == ("student", "other") and "size" not in maps.arrays


def test_what_is_inside():
    maps = PredictedMaps.from_arrays(sized_arrays(), year=2018)
    inside = maps.inside(slice(8, 20))
    assert inside.shape == (12, 6, 7) and inside.dtype == bool
    for mask, (rows, columns) in zip(inside, maps.size[8:], strict=True):
        assert mask[:rows, :columns].all() and mask.sum() == rows * columns
    assert maps.inside(slice(19, 20)) is None, "this one has no padding"
    whole = PredictedMaps.from_arrays(good_arrays(), year=2018)
    assert whole.size is None and whole.inside(slice(0, 20)) is None and whole.n_pixels == 20 * 42


@pytest.mark.parametrize("compressed", [True, False])
def test_files_of_numpy(tmp_path, size, compressed):
    arrays = good_arrays()
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "maps-2019.npz", **arrays)
    with open_maps(tmp_path / "maps-2019.npz") as maps:
        assert maps.year == 2019
        np.testing.assert_array_equal(maps.prob("student", slice(2, 19)), arrays["student_prob"][2:19])


def test_a_large_file_can_be_written_as_another(tmp_path, monkeypatch):
    monkeypatch.setattr(maps_module, "_IN_MEMORY_BYTES", 0)
    arrays = good_arrays()
    write_file(tmp_path / "predictions_2018.npz", arrays)
    with open_maps(tmp_path / "predictions_2018.npz") as maps:
        write_maps(tmp_path / "predictions_2018.hdf5", maps)
    with open_maps(tmp_path / "predictions_2018.hdf5") as maps:
        np.testing.assert_array_equal(maps.prob("student", slice(0, 20)), arrays["student_prob"])


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("y_dtype", ["bool", "u1", "i2", "<i8", ">i4"])
def test_any_precision(tmp_path, suffix, size, dtype, y_dtype):
    arrays = good_arrays()
    stored = {name: a.astype(y_dtype if name == "y" else dtype) for name, a in arrays.items()}
    with open_maps(write_file(tmp_path / f"predictions_2018{suffix}", stored)) as maps:
        prob = maps.prob("student", slice(0, 20))
        assert prob.dtype.isnative
        np.testing.assert_array_equal(prob, stored["student_prob"])
        np.testing.assert_array_equal(maps.fire(slice(0, 20)), arrays["y"] > 0)


def test_maps_stored_by_columns(tmp_path, size):
    arrays = good_arrays()
    stored = {name: np.asfortranarray(array) for name, array in arrays.items()}
    with open_maps(write_file(tmp_path / "predictions_2018.npz", stored)) as maps:
        np.testing.assert_array_equal(maps.prob("student", slice(3, 9)), arrays["student_prob"][3:9])


def test_the_year_of_the_file_beats_its_name(tmp_path, suffix):
    path = write_file(tmp_path / f"predictions_2018{suffix}", good_arrays() | {"year": np.array(2021)})
    assert open_maps(path).year == 2021


def test_the_year_may_be_an_attribute(tmp_path):
    path = write_file(tmp_path / "maps.h5", good_arrays())
    with h5py.File(path, "a") as store:
        store.attrs["year"] = 2020
    assert open_maps(path).year == 2020


def test_the_same_maps_make_the_same_bytes(tmp_path):
    maps = PredictedMaps.from_arrays(good_arrays(), year=2018)
    for name in ("a.npz", "b.npz"):
        write_maps(tmp_path / name, maps)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_failed_write_leaves_the_earlier_file(tmp_path, suffix):
    class Broken(np.ndarray):
        def __getitem__(self, images):
            raise RuntimeError("disk on fire")

    path = tmp_path / f"predictions_2018{suffix}"
    maps = PredictedMaps.from_arrays(good_arrays(), year=2018)
    write_maps(path, maps)
    before = path.read_bytes()
    broken = PredictedMaps(2018, {"y": np.zeros((1, 2, 2)).view(Broken)}, (), None, None, "broken")
    with pytest.raises(RuntimeError, match="disk on fire"):
        write_maps(path, broken)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_suffix_that_says_nothing(tmp_path):
    maps = PredictedMaps.from_arrays(good_arrays(), year=2018)
    with pytest.raises(PredictionsError, match=r"unknown suffix '.csv'; name the file .npz, .h5 or .hdf5$"):
        write_maps(tmp_path / "maps.csv", maps)


def with_value(name: str, value: float) -> dict[str, np.ndarray]:
    arrays = good_arrays()
    arrays[name] = arrays[name].astype(np.float64 if name != "y" else np.int64)
    arrays[name][19, 2, 3] = value
    return arrays


def without(*names: str) -> dict[str, np.ndarray]:
    return {name: array for name, array in good_arrays().items() if name not in names}


BAD = {
    "y missing": (without("y"), "no array y; add y (images, rows, columns) with 1 where fire burnt"),
    "y flat": (
        good_arrays() | {"y": np.zeros((20, 42), np.uint8)},
        "y has shape (20, 42); give it (images, rows, columns)",
    ),
    "y empty": (
        {name: array[:0] for name, array in good_arrays().items()},
        "y has shape (0, 6, 7); give it (images, rows, columns)",
    ),
    "shapes differ": (
        good_arrays() | {"other_unc": np.zeros((20, 6, 8))},
        "other_unc has shape (20, 6, 8), y has (20, 6, 7); make them the same",
    ),
    "NaN": (with_value("student_prob", np.nan), "student_prob holds NaN; give every pixel a value from 0 to 1"),
    "below 0": (with_value("other_unc", -0.25), "other_unc holds -0.25; give every pixel a value from 0 to 1"),
    "above 1": (with_value("student_unc", 1.5), "student_unc holds 1.5; give every pixel a value from 0 to 1"),
    "infinite": (with_value("student_unc", np.inf), "student_unc holds inf; give every pixel a value from 0 to 1"),
    "y not binary": (with_value("y", 255), "y holds 255; write 1 where fire burnt and 0 elsewhere"),
    "prob not a float": (
        good_arrays() | {"student_prob": np.zeros((20, 6, 7), np.int32)},
        "student_prob holds int32; write it as numbers, maps as floats",
    ),
    "unclaimed array": (
        good_arrays() | {"logits": np.zeros(3)},
        "no method claims the array logits; name arrays y, METHOD_prob, METHOD_unc, METHOD_samples, fire_id, date, "
        "size or year",
    ),
    "nameless method": (
        good_arrays() | {"_prob": np.zeros(3)},
        "no method claims the array _prob; name arrays y, METHOD_prob, METHOD_unc, METHOD_samples, fire_id, date, "
        "size or year",
    ),
    "prob without unc": (without("other_unc"), "other_prob has no other_unc beside it; add other_unc"),
    "unc without prob": (without("student_prob"), "student_unc has no student_prob beside it; add student_prob"),
    "no method": ({"y": good_arrays()["y"]}, "no method; add METHOD_prob and METHOD_unc"),
    "no fire": (
        good_arrays() | {"y": np.zeros((20, 6, 7), bool)},
        "no image has fire; FCER needs fire in y",
    ),
    "fire_id of another length": (
        good_arrays() | {"fire_id": np.arange(3)},
        "fire_id has shape (3,); give one for each of 20 images",
    ),
    "size of another shape": (
        good_arrays() | {"size": np.ones((20, 3), int)},
        "size has shape (20, 3); give rows and columns of each image, (20, 2)",
    ),
    "size of one number": (
        good_arrays() | {"size": np.array(6)},
        "size has shape (); give rows and columns of each image, (20, 2)",
    ),
    "size in halves": (
        good_arrays() | {"size": np.full((20, 2), 2.5)},
        "size is not in whole numbers; give rows and columns in pixels",
    ),
    "size unknown": (
        good_arrays() | {"size": np.full((20, 2), np.nan)},
        "size is not in whole numbers; give rows and columns in pixels",
    ),
    "size in words": (
        good_arrays() | {"size": np.full((20, 2), "6")},
        "size is not in whole numbers; give rows and columns in pixels",
    ),
    "size beyond the maps": (
        good_arrays() | {"size": np.array([(6, 7)] * 18 + [(6, 8)] * 2)},
        "size says 6 x 8 px of image 18; give rows from 1 to 6 and columns from 1 to 7",
    ),
    "size of nothing": (
        good_arrays() | {"size": np.array([(6, 7)] * 19 + [(0, 7)])},
        "size says 0 x 7 px of image 19; give rows from 1 to 6 and columns from 1 to 7",
    ),
    "fire in the padding": (
        sized_arrays() | {"y": np.pad(np.ones((1, 1, 1), np.uint8), ((18, 1), (5, 0), (0, 6)))},
        "y has fire in image 18 beyond its size; write 0 there, or correct size",
    ),
    "NaN in the padding": (
        with_value("student_prob", np.nan)
        | {"size": np.array([(6, 7)] * 19 + [(2, 2)]), "y": np.eye(6, 7)[None].repeat(20, 0)},
        "student_prob holds NaN; give every pixel a value from 0 to 1",
    ),
    "several years": (
        good_arrays() | {"year": np.array([2018, 2019])},
        "year is not one whole number from 1 to 9999; write one file for each year",
    ),
    "year without end": (
        good_arrays() | {"year": np.array(np.inf)},
        "year is not one whole number from 1 to 9999; write one file for each year",
    ),
    "year before all": (
        good_arrays() | {"year": np.array(-5)},
        "year is not one whole number from 1 to 9999; write one file for each year",
    ),
    "year unknown": (
        good_arrays() | {"year": np.array(np.nan)},
        "year is not one whole number from 1 to 9999; write one file for each year",
    ),
    "fire_id in two dimensions": (
        good_arrays() | {"fire_id": np.zeros((20, 3))},
        "fire_id has shape (20, 3); give one for each of 20 images",
    ),
    "fire_id of another encoding": (
        good_arrays() | {"fire_id": np.array([b"\xff\xfe"] * 20)},
        "fire_id is not text in UTF-8; write it so",
    ),
    "year not a number": (
        good_arrays() | {"year": np.array("last")},
        "year is not one whole number from 1 to 9999; write one file for each year",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_a_sentence(tmp_path, suffix, size, case):
    arrays, sentence = BAD[case]
    path = write_file(tmp_path / f"predictions_2018{suffix}", arrays)
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    assert str(refused.value) == f"{path}: {sentence}"
    assert refused.value.exit_code == 2


def test_a_missing_file(tmp_path):
    with pytest.raises(PredictionsError) as refused:
        open_maps(tmp_path / "none.npz")
    expected = f"{tmp_path}/none.npz: no such file; give predictions_YEAR.npz or an HDF5 file that exists"
    assert str(refused.value) == expected


@pytest.mark.parametrize("content", [b"", b"year,prob\n2018,0.5\n"])
def test_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "predictions_2018.npz"
    path.write_bytes(content)
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    assert str(refused.value) == f"{path}: neither npz nor HDF5; write it with numpy.savez or h5py"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_file(tmp_path, suffix, share):
    path = write_file(tmp_path / f"predictions_2018{suffix}", good_arrays())
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: truncated or damaged (")
    assert message.endswith("); write it again")
    assert "\n" not in message


def test_a_damaged_array(tmp_path, size):
    path = tmp_path / "predictions_2018.npz"
    np.savez(path, **good_arrays())
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=r"truncated or damaged \(Bad CRC-32"):
        open_maps(path)


def test_an_array_shorter_than_it_says(tmp_path, size):
    path = tmp_path / "predictions_2018.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in good_arrays().items():
            maps_module.write_npz_array(archive, name, array.shape, array.dtype, [array[:-3]])
    with pytest.raises(PredictionsError, match=r"damaged \(y.npy should be uint8 of shape \(20, 6, 7\), but 714 bytes"):
        open_maps(path)


def test_python_objects_are_never_loaded(tmp_path):
    path = tmp_path / "predictions_2018.npz"
    np.savez(path, **good_arrays(), fire_id=np.array([{}] * 20, dtype=object))
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    expected = "fire_id holds Python objects, which are never loaded; store numbers or text"
    assert str(refused.value) == f"{path}: {expected}"


def test_groups_are_refused(tmp_path):
    path = write_file(tmp_path / "predictions_2018.h5", good_arrays())
    with h5py.File(path, "a") as store:
        store.create_group("more")
    with pytest.raises(PredictionsError, match="more is a group; store all arrays at the top"):
        open_maps(path)


@pytest.mark.parametrize("name", ["maps.npz", "maps_2018_2019.npz", "maps_20181.npz"])
def test_a_year_that_nothing_tells(tmp_path, name):
    path = write_file(tmp_path / name, good_arrays())
    with pytest.raises(PredictionsError) as refused:
        open_maps(path)
    assert str(refused.value) == f"{path}: year unknown; add an array year, or name it predictions_YEAR.npz"


def test_arrays_in_memory_need_a_year():
    with pytest.raises(PredictionsError, match=r"^predicted maps: year unknown; add an array year$"):
        PredictedMaps.from_arrays(good_arrays())

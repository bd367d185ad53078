"""Shards of a year: how it is cut, and that its maps are read alike, to the last bit, from anywhere."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.evaluation import evaluate, evaluate_files, shards
from fcer.evaluation.shards import close_opened, cut, read
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps
from plain_fcer import METHODS
from shard_cases import IMAGES, assert_same_bits, fire_arrays, fire_maps, is_open, lazy_arrays, written

OPTIONS = {"engine": "shards", "bootstrap": 10, "radii": [0, 2.5]}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "_IMAGES", IMAGES)


@pytest.fixture(params=[".npz", ".h5"])
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), st.integers(1, 400))
def test_every_image_is_in_one_shard(n_images, height, width, images, pixels):
    fire = np.ones((n_images, height, width))
    maps = PredictedMaps.from_arrays({"y": fire, "mine_prob": fire, "mine_unc": fire}, year=2018)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", images)
        patch.setattr(shards, "_PIXELS", pixels)
        parts = cut(maps)
    assert [i for part in parts for i in range(n_images)[part.place]] == list(range(n_images))
    for part in parts:
        assert part.n_images == 1 or (part.n_images <= images and part.n_images * height * width <= pixels)
    wasted = min(images, pixels // (height * width)) - parts[0].n_images
    assert len(parts) == 1 or wasted <= 0, "shards are as large as they may be"


def test_a_shard_travels_without_the_rest_of_the_year(tmp_path):
    stacks = fire_arrays(n_images=60, padding=True)
    own = sum(stack[:IMAGES].nbytes for stack in stacks.values() if stack.ndim == 3)
    for part in cut(PredictedMaps.from_arrays(stacks, year=2018)):
        assert own < len(pickle.dumps(part)) < 1.1 * own
    with open_maps(written(tmp_path, ".h5", stacks), values=False) as maps:
        for part in cut(maps):
            assert len(pickle.dumps(part)) < 1000


@pytest.mark.parametrize("source", ["memory", "lazy", ".npz", ".h5"])
def test_shards_hold_what_the_year_holds(tmp_path, source):
    stacks = fire_arrays(n_images=40, padding=True)
    known = lazy_arrays(stacks) if source == "lazy" else stacks
    maps = PredictedMaps.from_arrays(known, year=2018)
    if source.startswith("."):
        maps = open_maps(written(tmp_path, source, stacks), values=False)
    with maps, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", 18)  # a block, and a little of the next
        parts = cut(maps)
        for part in [*parts, parts[0]]:
            seen = 0
            for block in read(part, prob=METHODS, unc=METHODS):
                images = range(part.first, 40)[block.images]
                seen += len(images)
                np.testing.assert_array_equal(block.burnt, stacks["y"][images] == 1)
                for method in METHODS:
                    np.testing.assert_array_equal(block.prob[method], stacks[f"{method}_prob"][images])
                    np.testing.assert_array_equal(block.unc[method], stacks[f"{method}_unc"][images])
                inside = np.ones_like(block.burnt) if block.inside is None else block.inside
                assert inside.sum(axis=(1, 2)).tolist() == stacks["size"][images].prod(axis=1).tolist()
            assert seen == part.n_images
        assert all(not block.unc for block in read(parts[0], prob=METHODS))
    close_opened()


def test_a_file_that_is_written_anew_is_opened_anew(tmp_path, suffix):
    for seed in (0, 1):
        stacks = fire_arrays(seed)
        path = written(tmp_path, suffix, stacks)
        os.utime(path, (seed, seed))  # clocks of files may be slow
        with open_maps(path, values=False) as maps:
            block = next(read(cut(maps)[1], prob=METHODS))
        np.testing.assert_array_equal(block.prob["student"], stacks["student_prob"][IMAGES : 2 * IMAGES])
    close_opened()
    close_opened()


def test_the_last_file_alone_stays_open(tmp_path, suffix):
    paths = [tmp_path / str(year) / f"predictions_{year}{suffix}" for year in (2018, 2019)]
    for path in paths:
        write_maps(path, fire_maps(int(path.parent.name)))
        with open_maps(path, values=False) as maps:
            parts = cut(maps)
        assert [len(list(read(part, prob=METHODS, unc=METHODS))) for part in parts] == [1] * len(parts)
    assert [is_open(path) for path in paths] == [False, True]
    close_opened()
    assert not is_open(paths[1])


def stored_by_numpy(folder: Path, dtype: str, order: str) -> Path:
    stacks = fire_arrays(2018, padding=True)
    kept = {k: v.astype(dtype if v.dtype.kind == "f" else v.dtype, order=order) for k, v in stacks.items()}
    np.savez_compressed(folder / "maps_2018.npz", **kept)
    return folder / "maps_2018.npz"


SOURCES = {
    "lazy": lambda _: PredictedMaps.from_arrays(lazy_arrays(fire_arrays(2018, padding=True)), year=2018),
    "npz": lambda folder: written(folder, ".npz", fire_arrays(2018, padding=True)),
    "HDF5": lambda folder: written(folder, ".h5", fire_arrays(2018, padding=True)),
    "another byte order": lambda folder: stored_by_numpy(folder, ">f4", "C"),
    "by columns": lambda folder: stored_by_numpy(folder, "<f4", "F"),
}


@pytest.fixture(scope="module")
def from_memory():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", IMAGES)
        return evaluate(fire_maps(2018, padding=True), **OPTIONS)


@pytest.mark.parametrize(
    "source, workers", [*((source, 1) for source in SOURCES), ("lazy", 2), ("npz", 2), ("HDF5", 2)]
)
def test_maps_from_anywhere_give_the_same_bits(tmp_path, from_memory, source, workers):
    maps = SOURCES[source](tmp_path)
    run, years = (evaluate, maps) if source == "lazy" else (evaluate_files, [maps])
    assert_same_bits(run(years, **OPTIONS, workers=workers), from_memory)

"""Pieces add up to the same bits in any order, from any cut and any number of workers, and take little memory."""

import tracemalloc
import weakref
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from fcer.evaluation.region_pieces import RegionPiece, RegionTask, sweep_shard
from fcer.evaluation.region_totals import RegionTotal
from fcer.evaluation.segmentation_pieces import (
    SegmentationPiece,
    SegmentationTask,
    SegmentationTotal,
    segment_shard,
)
from fcer.evaluation.year import Fires, fires_of
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer.evaluation import evaluate, shards
from fcer.evaluation.shards import Shard, cut
from fcer.maps.predicted_maps import PredictedMaps
from shard_cases import IMAGES, Lazy, assert_same_bits, fire_arrays, fire_maps

RADII, ANCHORS = (0.0, 1.5, 4.0, 8.0), (4.0, 1.5)
N_IMAGES = 40


def years() -> list[PredictedMaps]:
    """More than one block of images, of many sizes and thus of many remainders of whatever a processor adds at once."""
    return [fire_maps(2018, n_images=N_IMAGES, padding=True), fire_maps(2019, dtype=np.float16)]


@pytest.fixture(scope="module")
def uncut():
    return evaluate(years(), engine="shards", bootstrap=20, radii=[0, 2.5])


CUTS = {
    "image by image": (1, 1 << 22),
    "in sevens": (7, 1 << 22),
    "past a block": (17, 1 << 22),
    "by pixels": (256, 4000),
}


@pytest.mark.parametrize("case", CUTS)
def test_the_cut_changes_no_bit(monkeypatch, uncut, case):
    for name, limit in zip(("_IMAGES", "_PIXELS"), CUTS[case], strict=True):
        monkeypatch.setattr(shards, name, limit)
    assert len(cut(years()[0])) > 1
    assert_same_bits(evaluate(years(), engine="shards", bootstrap=20, radii=[0, 2.5]), uncut)


def test_the_number_of_workers_changes_no_bit(monkeypatch, uncut):
    monkeypatch.setattr(shards, "_IMAGES", 9)
    assert_same_bits(evaluate(years(), engine="shards", bootstrap=20, radii=[0, 2.5], workers=2), uncut)


def numbers(found: Any) -> Iterator[np.ndarray]:
    """Every array within a result, or piece, or total."""
    if is_dataclass(found):
        found = [getattr(found, field.name) for field in fields(found)]
    elif hasattr(found, "__dict__"):
        found = vars(found)
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        for part in found:
            yield from numbers(part)
    elif found is not None:
        yield np.asarray(found)


def pieces_of(maps: PredictedMaps) -> tuple[Fires, list[tuple[Shard, SegmentationPiece, RegionPiece | None]]]:
    """The student's; none of regions where a shard has no fire."""
    on_fire = maps.fire(slice(None)).any(axis=(1, 2))
    fires = fires_of(maps, on_fire, 20, 0)
    made = []
    for shard in cut(maps):
        fire = fires.fire[shard.place]
        found = segment_shard(SegmentationTask(shard, fire))["student"]
        regions = sweep_shard(RegionTask(shard, fire, "student", RADII, ANCHORS))
        assert bool(regions) == on_fire[shard.place].any()
        made.append((shard, found, regions.get("student")))
    return fires, made


def totals_of(maps: PredictedMaps, fires: Fires, pieces: list) -> tuple[SegmentationTotal, RegionTotal]:
    segmentation, regions = SegmentationTotal(maps, fires.draws), RegionTotal(fires, RADII, ANCHORS)
    for shard, found, near in pieces:
        segmentation.add(shard, found)
        if near is not None:
            regions.add(shard, near)
    return segmentation, regions


@pytest.fixture(scope="module")
def made():
    maps = fire_maps(2018, n_images=N_IMAGES, padding=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", IMAGES)
        fires, pieces = pieces_of(maps)
    expected = [list(numbers(total.result())) for total in totals_of(maps, fires, pieces)]
    return maps, fires, pieces, expected


@settings(max_examples=10)
@given(order=st.permutations(range(N_IMAGES // IMAGES)))
def test_the_order_of_pieces_changes_no_bit(made, order):
    maps, fires, pieces, expected = made
    for total, numbers_before in zip(totals_of(maps, fires, [pieces[k] for k in order]), expected, strict=True):
        found = list(numbers(total.result()))
        assert len(found) == len(numbers_before) > 5
        for ours, theirs in zip(found, numbers_before, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_pieces_count_every_pixel_once(made):
    maps, _, pieces, _ = made
    on_fire = maps.fire(slice(None)).any(axis=(1, 2))
    assert sum(int(found.codes.counts.sum()) for _, found, _ in pieces) == maps.n_pixels + int(maps.arrays["y"].sum())
    near = [piece for _, _, piece in pieces if piece is not None]
    assert 0 < len(near) < len(pieces)
    assert sum(len(piece.scores.auroc) for piece in near) == on_fire.sum()
    wrong = (maps.arrays["student_prob"] > 0.5) != maps.arrays["y"]
    wrong = int((wrong & maps.inside(slice(None)))[on_fire].sum())
    everywhere = int(maps.size[on_fire].prod(axis=1).sum())
    assert sum(int(piece.full.counts.sum()) for piece in near) == everywhere + wrong


def n_bytes(found: Any) -> int:
    return sum(array.nbytes for array in numbers(found))


def test_totals_grow_by_a_row_for_each_image_and_no_more():
    size = {}
    for n_images in (40, 80):
        maps = fire_maps(2018, n_images=n_images)
        fires = fires_of(maps, np.ones(n_images, dtype=bool), 20, 0)
        totals = SegmentationTotal(maps, fires.draws), RegionTotal(fires, RADII, ANCHORS)
        # whose fire an image shows, and how often each is drawn, is known once for all methods
        size[n_images] = n_bytes(totals) - 3 * n_bytes(fires.draws) - n_bytes((fires.on_fire, fires.fire))
    rows = (3 + 2) + 1 + (4 * len(ANCHORS) + 2)
    assert size[80] - size[40] == 40 * rows * 8


def test_pieces_are_no_larger_for_being_of_many_images(made):
    maps, _, _, _ = made
    fire = np.zeros(N_IMAGES, dtype=np.int64)
    sizes = []
    for images in (slice(0, 1), slice(0, N_IMAGES)):
        arrays = {name: array[images] for name, array in maps.arrays.items()}
        part = PredictedMaps(2018, arrays, maps.methods, None, None, "some", maps.size[images])
        (shard,) = cut(part)
        task = RegionTask(shard, fire[images], "student", RADII, ANCHORS)
        pieces = segment_shard(SegmentationTask(shard, fire[images])), sweep_shard(task)
        codes = [packed.counts.size for piece in pieces[1].values() for packed in (piece.rings, piece.full)]
        assert max(codes) < 2 * part.n_pixels
        sizes.append(n_bytes(pieces))
    added = sum(array[1:].nbytes for array in maps.arrays.values())
    assert sizes[1] - sizes[0] < 3 * added


class Repeated(Lazy):
    """A few images, over and over: a year of any length that takes no memory of its own."""

    def __init__(self, array: np.ndarray, times: int) -> None:
        super().__init__(array)
        self.shape = (times * len(array), *array.shape[1:])

    def __getitem__(self, images: slice) -> np.ndarray:
        return self._array[np.arange(*images.indices(self.shape[0])) % len(self._array)]


def test_memory_does_not_grow_with_the_year(monkeypatch):
    monkeypatch.setattr(shards, "_IMAGES", 20)
    stacks = {name: stack for name, stack in fire_arrays(n_images=20).items() if stack.ndim == 3}
    peaks = {}
    for engine in ("shards", "exact"):
        for times in (2, 5):
            repeated = {name: Repeated(stack, times) for name, stack in stacks.items()}
            maps = PredictedMaps.from_arrays(repeated, year=2018, values=False)
            tracemalloc.start()
            evaluate(maps, engine=engine, bootstrap=0, radii=[])
            peaks[engine, times] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    added = 3 * sum(stack.nbytes for stack in stacks.values())
    assert peaks["exact", 5] - peaks["exact", 2] > added / 2, "else this tests nothing"
    assert peaks["shards", 5] - peaks["shards", 2] < added / 20


@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_that_was_added_is_let_go(monkeypatch, workers):
    monkeypatch.setattr(shards, "_IMAGES", 2)
    added: list[weakref.ref] = []
    alive = []
    add = SegmentationTotal.add

    def watched(self: SegmentationTotal, shard: Shard, piece: SegmentationPiece) -> None:
        alive.append(sum(reference() is not None for reference in added))
        added.append(weakref.ref(piece))
        add(self, shard, piece)

    monkeypatch.setattr(SegmentationTotal, "add", watched)
    evaluate(fire_maps(n_images=24), engine="shards", bootstrap=0, radii=[], workers=workers)
    assert len(alive) == 24
    assert max(alive) <= 4, "two methods of this shard, and of the one before"

"""Pieces add up to the same bits in any order, from any cut and any number of workers, and take little memory."""

import tracemalloc
import weakref
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer.core.rankers import CodedRanks
from fcer.core.region_totals import RegionPlan, RegionTotals
from fcer.evaluation import evaluate, shards
from fcer.evaluation.engines import Fires, RegionTask, SegmentationTask, segment_shard, sweep_shard
from fcer.evaluation.segmentation_totals import SegmentationPlan, SegmentationTotals
from fcer.evaluation.shards import cut
from fcer.maps.predicted_maps import PredictedMaps
from shard_cases import IMAGES, Lazy, assert_same_bits, fire_arrays, fire_maps

PLAN = RegionPlan((0.0, 1.5, 4.0, 8.0), (4.0, 1.5), CodedRanks, draws=True)
SEGMENTATION = SegmentationPlan(CodedRanks, 0.5, draws=True)
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


def pieces_of(maps: PredictedMaps) -> tuple[Fires, list[tuple[SegmentationTotals, RegionTotals]]]:
    """The student's, shard by shard."""
    fires = Fires.of(maps, 20, 0)
    made = []
    for shard in cut(maps):
        of_image, methods = fires.of_image[shard.place], ("student",)
        found = segment_shard(SegmentationTask(shard, of_image, methods, SEGMENTATION))
        regions = sweep_shard(RegionTask(shard, of_image, methods, (), (), "student", PLAN))
        made.append((found["student"], regions["student"]))
    return fires, made


def measured(fires: Fires, pieces: list) -> list[np.ndarray]:
    """Every number that the pieces come to, merged in their order."""
    weights = fires.resamples.weights
    segmentation, regions = (
        SegmentationTotals(SEGMENTATION, weights),
        RegionTotals(PLAN, own_prob=True, weights=weights),
    )
    for found, near in pieces:
        segmentation.merge(found)
        regions.merge(near)
    return [*numbers(segmentation.result()), *numbers(regions.result(fires.resamples))]


@pytest.fixture(scope="module")
def made():
    maps = fire_maps(2018, n_images=N_IMAGES, padding=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", IMAGES)
        fires, pieces = pieces_of(maps)
    return maps, fires, pieces, measured(fires, pieces)


@settings(max_examples=10)
@given(order=st.permutations(range(N_IMAGES // IMAGES)))
def test_the_order_of_pieces_changes_no_bit(made, order):
    _, fires, pieces, expected = made
    found = measured(fires, [pieces[k] for k in order])
    assert len(found) == len(expected) > 20
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def n_bytes(found: Any) -> int:
    return sum(array.nbytes for array in numbers(found))


def test_totals_grow_by_a_row_for_each_image_and_no_more():
    size = {}
    for n_images in (40, 80):
        maps = fire_maps(2018, n_images=n_images)
        fires, pieces = pieces_of(replace(maps, fire_id=np.array(["one"] * n_images)))
        weights = fires.resamples.weights
        totals = SegmentationTotals(SEGMENTATION, weights), RegionTotals(PLAN, own_prob=True, weights=weights)
        for piece in pieces:
            for total, part in zip(totals, piece, strict=True):
                total.merge(part)
                total._levels._weigh()
        size[n_images] = n_bytes(totals)
    rows = (4 + 2) + 1 + (5 * len(PLAN.anchors) + 1 + 2)  # and the first of each block's images
    assert size[80] - size[40] <= 40 * rows * 8 + 2 * 5 * 8


def test_pieces_are_no_larger_for_being_of_many_images(made):
    maps = made[0]
    sizes = []
    for images in (slice(0, 1), slice(0, N_IMAGES)):
        arrays = {name: array[images] for name, array in maps.arrays.items()}
        _, pieces = pieces_of(PredictedMaps(2018, arrays, maps.methods, None, None, "some", maps.size[images]))
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
    assert peaks["shards", 5] - peaks["shards", 2] < added / 8, "a row for each image, and no pixel of it"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_that_was_merged_is_let_go(monkeypatch, workers):
    monkeypatch.setattr(shards, "_IMAGES", 2)
    merged: list[weakref.ref] = []
    alive = []
    merge = SegmentationTotals.merge

    def watched(self: SegmentationTotals, piece: SegmentationTotals) -> None:
        alive.append(sum(reference() is not None for reference in merged))
        merged.append(weakref.ref(piece))
        merge(self, piece)

    monkeypatch.setattr(SegmentationTotals, "merge", watched)
    evaluate(fire_maps(n_images=24), engine="shards", bootstrap=0, radii=[], workers=workers)
    assert len(alive) == 24
    assert max(alive) <= 4, "two methods of this shard, and of the one before"

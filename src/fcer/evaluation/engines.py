"""Two ways to rank a year's maps, with the same tables: exactly, in memory; or by codes, shard by shard.

Whatever else is measured is one and the same. The exact engine takes one method after the other, since it keeps every
value; codes take memory that does not grow with the number of images, and may be counted by several workers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from fcer.core.arrays import IntArray
from fcer.core.bootstrap import Resamples
from fcer.core.near_fire import NearFire, list_near_fire
from fcer.core.rankers import CodedRanks, SortedRanks
from fcer.core.region_totals import MethodRegions, RegionPlan, RegionTotals
from fcer.core.regions import pixels_inside
from fcer.errors import ConfigError
from fcer.evaluation.progress import Bar
from fcer.evaluation.segmentation_totals import MethodSegmentation, SegmentationPlan, SegmentationTotals
from fcer.evaluation.shards import Block, Shard, close_opened, cut, read
from fcer.maps.predicted_maps import PredictedMaps
from fcer.runtime.parallel import map_tasks
from fcer.runtime.threads import cores

__all__ = ["ENGINES", "Engine", "Fires", "choose_engine", "reads"]

ENGINES = ("auto", "exact", "shards")

_SIDE_BY_SIDE_PIXELS = 1 << 26
"""Pixels of a year up to which methods are ranked side by side: some 1 GB for each core at most."""

_EXACT_PIXELS = 1 << 28
"""Pixels of the largest year up to which `auto` is exact: some 3 GB of memory at most."""


def choose_engine(asked: str, years: Sequence[PredictedMaps]) -> str:
    """`exact` or `shards`, by the pixels of the largest year where neither was asked for: years come one by one."""
    if asked not in ENGINES:
        raise ConfigError(f"engine: there is no {asked!r}; choose one of {', '.join(ENGINES)}")
    if asked != "auto":
        return asked
    return "exact" if max(int(np.prod(maps.shape)) for maps in years) <= _EXACT_PIXELS else "shards"


def reads(engine: str, n_methods: int, n_controls: int) -> int:
    """How often each image is read."""
    return 2 if engine == "shards" else 1 + 2 * n_methods + n_controls


@dataclass(frozen=True)
class Fires:
    """Whose each image of a year is, by number, and how often each fire counts in draws of them."""

    of_image: IntArray
    resamples: Resamples

    @classmethod
    def of(cls, maps: PredictedMaps, n_draws: int, seed: int) -> "Fires":
        """An image without a fire_id is a fire of its own."""
        labels = np.arange(maps.shape[0]) if maps.fire_id is None else maps.fire_id
        names, of_image = np.unique(labels, return_inverse=True)
        return cls(of_image, Resamples.draw(names.size, n_draws, np.random.default_rng((seed, maps.year))))


class SegmentationTask(NamedTuple):
    """A shard, whose fire each of its images shows, and the methods to look at."""

    shard: Shard
    fire: IntArray
    methods: tuple[str, ...]
    plan: SegmentationPlan

    def __str__(self) -> str:
        return str(self.shard)


class RegionTask(NamedTuple):
    """Likewise, and the controls among them; those that the maps do not hold are the reference's probability."""

    shard: Shard
    fire: IntArray
    methods: tuple[str, ...]
    controls: tuple[str, ...]
    borrowed: tuple[str, ...]
    reference: str
    plan: RegionPlan
    near: tuple[NearFire | None, ...] | None = None
    """Block by block, where the pixels near fire were listed before."""

    def __str__(self) -> str:
        return str(self.shard)


def segment_shard(task: SegmentationTask) -> dict[str, SegmentationTotals]:
    """What each method comes to on the images of a shard."""
    totals = {method: SegmentationTotals(task.plan) for method in task.methods}
    for block in read(task.shard, prob=task.methods):
        first = task.shard.first + block.images.start
        for method, prob in block.prob.items():
            totals[method].update(first, block.burnt, prob, block.inside, task.fire[block.images])
    return totals


def sweep_shard(task: RegionTask) -> dict[str, RegionTotals]:
    """What each method comes to on the fire images of a shard."""
    totals = {method: RegionTotals(task.plan, own_prob=method not in task.controls) for method in task.methods}
    own = [method for method in task.methods if method not in task.controls]
    needed = [task.reference] if task.near is None or set(task.methods) & set(task.borrowed) else []
    stored = [method for method in task.methods if method not in task.borrowed]
    for k, block in enumerate(read(task.shard, prob=list(dict.fromkeys(own + needed)), unc=stored, again=True)):
        near = _near(block, task) if task.near is None else task.near[k]
        if near is None:
            continue
        some = np.flatnonzero(block.burnt.any(axis=(1, 2)))
        burnt, inside = block.burnt[some], None if block.inside is None else block.inside[some]
        flat = pixels_inside(burnt, inside)
        for method in task.methods:
            prob, unc = (
                None if stack is None else pixels_inside(stack[some], inside)
                for stack in (
                    block.prob[method] if method in own else None,
                    block.unc[method] if method in stored else block.prob[task.reference],
                )
            )
            first = task.shard.first + block.images.start
            assert unc is not None
            totals[method].update(first, near, flat, prob, unc, task.fire[block.images][some])
    return totals


def _near(block: Block, task: RegionTask) -> NearFire | None:
    """None where no image shows fire."""
    some = block.burnt.any(axis=(1, 2))
    if not some.any():
        return None
    inside = None if block.inside is None else block.inside[some]
    prob = block.prob[task.reference][some]
    return list_near_fire(block.burnt[some], prob, task.plan.radii, inside, task.plan.threshold)


_Task = TypeVar("_Task", SegmentationTask, RegionTask)
_Found = TypeVar("_Found")
_Totals = TypeVar("_Totals", SegmentationTotals, RegionTotals)


@dataclass(frozen=True)
class Engine:
    """How a year is gone through: `exact`, or `shards` by so many workers (0: one for each core) or a cluster."""

    name: str
    workers: int
    bar: Bar

    @property
    def ranks(self) -> type[SortedRanks | CodedRanks]:
        """How pixels are ranked."""
        return SortedRanks if self.name == "exact" else CodedRanks

    def segment(
        self, maps: PredictedMaps, methods: Sequence[str], fires: Fires, threshold: float
    ) -> dict[str, MethodSegmentation]:
        """How well each method finds fire."""
        plan = SegmentationPlan(self.ranks, threshold, bool(fires.resamples))
        tasks = [
            SegmentationTask(shard, fires.of_image[shard.place], tuple(methods), plan) for shard in self._cut(maps)
        ]

        def measured(some: tuple[str, ...]) -> dict[str, MethodSegmentation]:
            totals = {method: SegmentationTotals(plan, _weights(fires)) for method in some}
            now = [task._replace(methods=some) for task in tasks]
            self._add_up(totals, segment_shard, now, f"segmentation {maps.year}")
            return {method: total.result() for method, total in totals.items()}

        return self._all(measured, methods, maps)

    def sweep(
        self,
        maps: PredictedMaps,
        methods: Sequence[str],
        controls: Sequence[str],
        reference: str,
        fires: Fires,
        plan: RegionPlan,
    ) -> dict[str, MethodRegions]:
        """Each method, and each control, in the regions of a plan."""
        every = (*methods, *controls)
        borrowed = tuple(name for name in controls if name not in maps.methods)
        tasks = [
            RegionTask(shard, fires.of_image[shard.place], every, tuple(controls), borrowed, reference, plan)
            for shard in self._cut(maps)
        ]
        if self.name == "exact":  # listed once for all methods
            tasks = [task._replace(near=self._listed(task)) for task in tasks]

        def measured(some: tuple[str, ...]) -> dict[str, MethodRegions]:
            totals = {
                method: RegionTotals(plan, own_prob=method in methods, weights=_weights(fires)) for method in some
            }
            now = [task._replace(methods=some) for task in tasks]
            self._add_up(totals, sweep_shard, now, f"regions {maps.year}")
            return {method: total.result(fires.resamples, maps.year) for method, total in totals.items()}

        return self._all(measured, every, maps)

    def _cut(self, maps: PredictedMaps) -> list[Shard]:
        return cut(maps, travel=self.name == "shards")

    def _all(
        self, measured: Callable[[tuple[str, ...]], dict[str, _Found]], methods: Sequence[str], maps: PredictedMaps
    ) -> dict[str, _Found]:
        """Every method: shards are read once for all of them; whoever keeps every value takes one at a time.

        Where the year is in memory and small, so many at a time as there are cores: sorting leaves Python to others.
        """
        if self.name == "shards":
            return measured(tuple(methods))
        turns = [(method,) for method in methods]
        small = int(np.prod(maps.shape)) <= _SIDE_BY_SIDE_PIXELS
        at_once = all(isinstance(array, np.ndarray) for array in maps.arrays.values()) and small
        with ThreadPoolExecutor(cores() if at_once else 1) as threads:
            return {method: one for found in threads.map(measured, turns) for method, one in found.items()}

    def _add_up(
        self,
        totals: Mapping[str, _Totals],
        function: Callable[[_Task], dict[str, _Totals]],
        tasks: Sequence[_Task],
        label: str,
    ) -> None:
        for task, pieces in self._pieces(function, tasks, label):
            for method, piece in pieces.items():
                totals[method].merge(piece)
            self.bar.update(task.shard.n_images)

    def _pieces(
        self, function: Callable[[_Task], dict[str, _Totals]], tasks: Sequence[_Task], label: str
    ) -> Iterator[tuple[_Task, dict[str, _Totals]]]:
        if self.name == "exact":
            yield from ((task, function(task)) for task in tasks)
            return
        try:
            yield from map_tasks(function, tasks, workers=self.workers, label=label, unit="shard")
        finally:
            close_opened()

    def _listed(self, task: RegionTask) -> tuple[NearFire | None, ...]:
        listed = tuple(_near(block, task) for block in read(task.shard, prob=[task.reference], again=True))
        self.bar.update(task.shard.n_images)
        return listed


def _weights(fires: Fires) -> IntArray | None:
    return fires.resamples.weights if fires.resamples else None

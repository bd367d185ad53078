"""Two ways to measure a year's maps, with the same tables: exactly, in memory; or shard by shard, by codes.

The exact one sorts every pixel. The other adds up pieces of shards, side by side where there are workers, in memory
that does not grow with the number of images.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np

from fcer.core.histogram import RankBound
from fcer.errors import ConfigError, PredictionsError
from fcer.evaluation.progress import Bar
from fcer.evaluation.region_pieces import RegionTask, sweep_shard
from fcer.evaluation.region_totals import RegionTotal
from fcer.evaluation.segmentation_pieces import SegmentationTask, SegmentationTotal, segment_shard
from fcer.evaluation.shards import Shard, close_opened, cut
from fcer.evaluation.year import Fires, MethodRegions, MethodSegmentation, find_fires, fires_of, segment, sweep_year
from fcer.maps.predicted_maps import PredictedMaps
from fcer.runtime.parallel import map_tasks

__all__ = ["ENGINES", "Engine", "ExactEngine", "ShardEngine", "choose_engine"]

ENGINES = ("auto", "exact", "shards")

_EXACT_PIXELS = 1 << 28
"""Pixels of all years up to which `auto` is exact: some 3 GB of memory at most."""


class Engine(Protocol):
    """What an evaluation asks of its engine."""

    @property
    def bound(self) -> RankBound | None:
        """How far rankings may be from exact ones, so far; None where they are exact by construction."""

    def segment(
        self, maps: PredictedMaps, n_draws: int, seed: int, bar: Bar
    ) -> tuple[Fires, dict[str, MethodSegmentation]]:
        """How well each method finds fire, and the year's fires."""

    def sweep(
        self,
        maps: PredictedMaps,
        reference: str,
        fires: Fires,
        radii: Sequence[float],
        anchors: Sequence[float],
        bar: Bar,
    ) -> dict[str, MethodRegions]:
        """Each method in the regions of the finite, ascending `radii` and the full image."""

    def reads(self, n_methods: int) -> int:
        """How often each image is read."""


def choose_engine(asked: str, years: Sequence[PredictedMaps]) -> str:
    """`exact` or `shards`, by the number of pixels where neither was asked for."""
    if asked not in ENGINES:
        raise ConfigError(f"engine: there is no {asked!r}; choose one of {', '.join(ENGINES)}")
    if asked != "auto":
        return asked
    return "exact" if sum(int(np.prod(maps.shape)) for maps in years) <= _EXACT_PIXELS else "shards"


class ExactEngine:
    """Every pixel is sorted, in this process."""

    bound = None

    def segment(
        self, maps: PredictedMaps, n_draws: int, seed: int, bar: Bar
    ) -> tuple[Fires, dict[str, MethodSegmentation]]:
        """See `Engine`."""
        fires = find_fires(maps, n_draws, seed, bar)
        return fires, {method: segment(maps, method, fires, bar) for method in maps.methods}

    def sweep(
        self,
        maps: PredictedMaps,
        reference: str,
        fires: Fires,
        radii: Sequence[float],
        anchors: Sequence[float],
        bar: Bar,
    ) -> dict[str, MethodRegions]:
        """See `Engine`."""
        return sweep_year(maps, reference, fires, radii, anchors, bar)

    def reads(self, n_methods: int) -> int:
        """Once to find fire, twice for each method, and once more for the errors."""
        return 2 + 2 * n_methods


_Task = TypeVar("_Task", SegmentationTask, RegionTask)
_Piece = TypeVar("_Piece")


@dataclass
class ShardEngine:
    """Pieces of shards are added up as they come, from `workers` processes or a cluster."""

    workers: int = 1
    bound: RankBound = field(default_factory=RankBound)

    def segment(
        self, maps: PredictedMaps, n_draws: int, seed: int, bar: Bar
    ) -> tuple[Fires, dict[str, MethodSegmentation]]:
        """See `Engine`."""
        fires = fires_of(maps, np.zeros(maps.shape[0], dtype=bool), n_draws, seed)
        totals = {method: SegmentationTotal(maps, fires.draws) for method in maps.methods}
        tasks = [SegmentationTask(shard, fires.fire[shard.place] if n_draws else None) for shard in cut(maps)]
        for shard, pieces in self._pieces(segment_shard, tasks, f"segmentation {maps.year}", bar):
            for method, piece in pieces.items():
                totals[method].add(shard, piece)
        measured = {method: self._known(total.result()) for method, total in totals.items()}
        on_fire = measured[maps.methods[0]].burnt > 0
        if not on_fire.any():
            raise PredictionsError(f"{maps.source}: no image has fire; FCER needs fire in y")
        return replace(fires, on_fire=on_fire), measured

    def sweep(
        self,
        maps: PredictedMaps,
        reference: str,
        fires: Fires,
        radii: Sequence[float],
        anchors: Sequence[float],
        bar: Bar,
    ) -> dict[str, MethodRegions]:
        """See `Engine`."""
        totals = {method: RegionTotal(fires, radii, anchors) for method in maps.methods}
        regions = reference, tuple(radii), tuple(anchors)
        # those without fire too, which add nothing: uncertainties are read here alone, and all are to be checked
        tasks = [
            RegionTask(shard, fires.fire[shard.place] if len(fires.draws) else None, *regions) for shard in cut(maps)
        ]
        for shard, pieces in self._pieces(sweep_shard, tasks, f"regions {maps.year}", bar):
            for method, piece in pieces.items():
                totals[method].add(shard, piece)
        return {method: self._known(total.result()) for method, total in totals.items()}

    def reads(self, n_methods: int) -> int:  # noqa: ARG002
        """Once to find fire and once for the regions."""
        return 2

    def _pieces(
        self, function: Callable[[_Task], _Piece], tasks: Sequence[_Task], label: str, bar: Bar
    ) -> Iterator[tuple[Shard, _Piece]]:
        try:
            for task, piece in map_tasks(function, tasks, workers=self.workers, label=label, unit="shard"):
                yield task.shard, piece
                bar.update(task.shard.n_images)
        finally:
            close_opened()

    def _known(self, result: tuple[_Piece, RankBound]) -> _Piece:
        measured, bound = result
        self.bound = self.bound.or_wider(bound)
        return measured

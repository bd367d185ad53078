"""What the head learns from, computed once: the backbone's features and logits, what the teachers say, what burnt.

Each sample passes through each member once; the backbone is one of them, so that its features come for free. A cache
lies in a folder named by everything that decides its content. It is written shard by shard: one that is there is
whole, and a caching that was killed goes on with the next.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fcer.data.channels import reads_land_cover
from fcer.data.samples import Samples
from fcer.errors import FcerError
from fcer.models.ensemble import BATCH, pass_through
from fcer.models.headers import save_sealed
from fcer.models.persistence_baseline import burning_today
from fcer.runtime.checksums import is_intact
from fcer.runtime.parallel import map_tasks
from fcer.runtime.sealed_text import is_readable, read_sealed_json, write_sealed_json
from fcer.runtime.steps import Step
from fcer.training.distributed import put_on
from fcer.training.feature_shards import CachedSplit
from fcer.training.teaching import ENSEMBLE, Teaching
from fcer.training.threads import with_threads_of_here
from fcer.uncertainty.predictors import SeenBatch
from fcer.uncertainty.registry import method_named

__all__ = [
    "FeatureCache",
    "cache_features",
    "cache_key",
    "cache_validation",
    "cached_bytes",
    "fires_of",
    "open_cache",
]

_SCHEMA = 3
"""Part of every key: raise it when the same inputs would be cached in another way."""

SHARD = 32
"""Samples of one file: 22 MB of the paper's."""

_LARGEST_HALF = float(torch.finfo(torch.float16).max)


@dataclass(frozen=True)
class FeatureCache:
    """A complete cache."""

    folder: Path
    key: str
    training: CachedSplit
    validation: CachedSplit
    found: bool
    """Whether all of it was there before."""
    fires: Sequence[str]
    """Which fire each sample of the validation years is of."""


@dataclass(frozen=True)
class _Shard:
    """One file: samples `start` to `stop` of a split, views one after the other."""

    path: Path
    samples: Samples
    start: int
    stop: int

    def __str__(self) -> str:
        return str(self.path)


def cache_key(teaching: Teaching) -> str:
    """SHA-256 in hex of everything that decides what is cached: same key, same content."""
    # unknown land cover was in no class before
    return Step(_SCHEMA + reads_land_cover(teaching.backbone.features), _decided_by(teaching)).key


def cached_bytes(teaching: Teaching) -> int:
    """The size on disk, but for headers of some hundred bytes a shard."""
    samples = len(teaching.training()) * teaching.views + len(teaching.validation())
    features = teaching.backbone.backbone.feature_channels
    # half precision: features and passes; single: logits; one byte each: what burns today, what burnt
    passes = len(teaching.teachers) if teaching.teacher == ENSEMBLE else 1
    return samples * teaching.crop**2 * (2 * features + 2 * passes + 4 + 1 + 1)


def cache_features(teaching: Teaching, root: Path) -> FeatureCache:
    """The cache of `teaching` below `root`, with whatever shards are missing computed now."""
    key = cache_key(teaching)
    folder = root / key[:16]
    splits = {
        "training": _shards(folder, "training", teaching.training(), teaching.views),
        "validation": _shards(folder, "validation", teaching.validation(), 1),
    }
    shards = [shard for some in splits.values() for shard in some]
    missing = [shard for shard in shards if not is_intact(shard.path)]
    if missing:
        if teaching.teacher != ENSEMBLE:
            method_named(teaching.teacher).check(teaching.predictors)
        left = sum(shard.stop - shard.start for shard in missing) / sum(shard.stop - shard.start for shard in shards)
        _make_room(folder, cached_bytes(teaching), left)
    if missing or not is_readable(_description(folder), read_sealed_json):
        _describe(folder, teaching)
        _fill(missing, teaching)
    training, validation = (CachedSplit([shard.path for shard in some]) for some in splits.values())
    return FeatureCache(folder, key, training, validation, not missing, fires_of(teaching.validation()))


def cache_validation(teaching: Teaching, root: Path) -> CachedSplit:
    """The validation years alone, in a cache of their own: what a member makes of fires that it did not learn from."""
    folder = root / f"{cache_key(teaching)[:16]}-validation"
    shards = _shards(folder, "validation", teaching.validation(), 1)
    if missing := [shard for shard in shards if not is_intact(shard.path)]:
        _describe(folder, teaching)
        _fill(missing, teaching)
    return CachedSplit([shard.path for shard in shards])


def open_cache(folder: Path) -> FeatureCache:
    """A complete cache by its folder, for those who need neither the data nor the members."""
    training, validation = (
        CachedSplit(sorted(folder.glob(f"{split}-*.safetensors"))) for split in ("training", "validation")
    )
    try:
        described = read_sealed_json(_description(folder))
        key, samples, fires = described["key"], described["samples"], described["fires"]
    except (OSError, ValueError, KeyError, TypeError):
        key, samples, fires = "", None, []
    if samples != [len(training), len(validation)]:
        raise FcerError(f"{folder}: not a complete feature cache; run fcer distill with the same options")
    return FeatureCache(folder, key, training, validation, True, fires)


def fires_of(samples: Samples) -> list[str]:
    """Which fire each sample is of, by a name that is the same whoever reads the data."""
    fires = (samples.locate(k)[0] for k in range(len(samples)))
    return [f"{fire.year}/{fire.name}" for fire in fires]


def _decided_by(teaching: Teaching) -> dict[str, Any]:
    fold, shared = teaching.backbone.fold, teaching.shared
    others: dict[str, Any] = {}
    if teaching.teacher != ENSEMBLE:
        files = sorted(path.name for path in teaching.families.values())
        others = {"teacher": teaching.teacher, "passes": teaching.passes, "families": files}
    return {
        **others,
        "training": teaching.dataset.fingerprint(fold.train),
        "validation": teaching.dataset.fingerprint(fold.validation),
        "teachers": [member.digest for member in teaching.teachers],
        "backbone": teaching.backbone.digest,
        "arch": teaching.backbone.backbone.spec.arch,
        "features": list(teaching.backbone.features),
        # a member's own statistics are in its checkpoint, or follow from the fold of a released one
        "folds": [member.fold.number for member in teaching.teachers],
        "shared": None if shared is None else [list(shared.mean), list(shared.std)],
        "crop": teaching.crop,
        "views": teaching.views,
        "seed": teaching.seed,
    }


def _shards(folder: Path, split: str, samples: Samples, views: int) -> list[_Shard]:
    total = len(samples) * views
    starts = range(0, total, SHARD)
    return [
        _Shard(folder / f"{split}-{k:05d}.safetensors", samples, start, min(start + SHARD, total))
        for k, start in enumerate(starts)
    ]


def _make_room(folder: Path, size: int, left: float) -> None:
    """Say how much is coming, and refuse what the disk cannot hold before the first of it is computed."""
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = size * left, shutil.disk_usage(folder).free
    going_on = f", {1 - left:.0%} of it there already" if left < 1 else ""
    print(f"feature cache: {_gigabytes(size)} in {folder}{going_on}")
    if needed > free:
        raise FcerError(
            f"feature cache: {_gigabytes(needed)} more are needed in {folder}, where {_gigabytes(free)} are free; make "
            "room (`fcer cache clear` removes older caches), name another --work, or use fewer --views"
        )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size / 1e6:.2f} MB"


def _describe(folder: Path, teaching: Teaching) -> None:
    """For `fcer cache list`: what this is, and how large it will be."""
    fold = teaching.backbone.fold
    content = {
        "what": f"features of {teaching.backbone.path.name}, taught by {len(teaching.teachers)} members",
        "arch": teaching.backbone.backbone.spec.arch,
        "test_years": list(fold.test),
        "data": str(teaching.dataset.catalog.root),
        "samples": [len(teaching.training()) * teaching.views, len(teaching.validation())],
        "fires": fires_of(teaching.validation()),
        "bytes": cached_bytes(teaching),
        "key": cache_key(teaching),
        "decided_by": _decided_by(teaching),
    }
    write_sealed_json(_description(folder), content)


def _description(folder: Path) -> Path:
    return folder / "cache.json"


def _fill(missing: Sequence[_Shard], teaching: Teaching) -> None:
    """One process alone: torch uses all cores. On a cluster, shards are spread over its workers."""
    write, gpu = with_threads_of_here(partial(_write_shard, teaching=teaching)), teaching.device == "cuda"
    for _ in map_tasks(write, missing, workers=1, label="cache features", unit="shard", gpu=gpu):
        pass


def _write_shard(shard: _Shard, *, teaching: Teaching) -> None:
    put_on(teaching.teachers, teaching.device)
    starts = range(shard.start, shard.stop, BATCH)
    places = [range(start, min(start + BATCH, shard.stop)) for start in starts]
    parts = [_pass(shard.samples, some, teaching) for some in places]
    arrays = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    save_sealed(shard.path, arrays, {})


def _pass(samples: Samples, places: range, teaching: Teaching) -> dict[str, Tensor]:
    """What is kept of some samples; places count through the views, one after the other."""
    batches, today, taught = [], [], []
    # a batch may reach from one view into the next
    for view in sorted({place // len(samples) for place in places}):
        samples.set_epoch(view)
        read = [samples.raw(place % len(samples)) for place in places if place // len(samples) == view]
        batches.append(pass_through(teaching.teachers, samples, read, shared=teaching.shared, keep=teaching.backbone))
        today += [burning_today(days, samples) for days, _ in read]
        if teaching.teacher != ENSEMBLE:
            seen = SeenBatch(teaching.predictors, samples, places.start, read)
            taught.append(method_named(teaching.teacher).unc(seen))
    own = list(teaching.teachers).index(teaching.backbone)
    features = np.concatenate([batch.features_BFHW for batch in batches if batch.features_BFHW is not None])
    if np.abs(features).max() > _LARGEST_HALF:
        raise FcerError(
            f"{teaching.backbone.path}: its decoder's features reach {np.abs(features).max():.3g}, more than half "
            "precision can hold; the backbone has diverged, train it again with a lower --member-lr"
        )
    if taught:
        passes_KBHW = np.concatenate(taught)[None]
    else:
        passes_KBHW = np.concatenate([batch.probabilities_KBHW for batch in batches], axis=1)
    return {
        "features": torch.from_numpy(features).half().contiguous(),
        "logits": torch.from_numpy(np.concatenate([batch.logits_KBHW[own] for batch in batches])),
        "passes": torch.from_numpy(passes_KBHW.astype(np.float32)).transpose(0, 1).half().contiguous(),
        "y": torch.from_numpy(np.concatenate([batch.y_BHW for batch in batches])),
        "today": torch.from_numpy(np.stack(today).astype(np.uint8)),
    }

"""Small studies: a cache that needs no training, a space of two settings, and jobs on them."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from fcer.search.space import Space, read_space
from fcer.search.storage import TrialStore
from fcer.search.worker import Job

SIDE, FEATURES, MEMBERS = 16, 4, 3


def write_cache(folder: Path, samples: int = 6) -> Path:
    """Blobs of fire, with features that know a little of where the backbone errs."""
    folder.mkdir(parents=True)
    for split, seed in (("training", 0), ("validation", 1)):
        rng = np.random.default_rng(seed)
        rows, columns = np.mgrid[:SIDE, :SIDE]
        distance = np.hypot(rows - 8, columns - 8) - rng.uniform(2, 5, (samples, 1, 1))
        noise = rng.normal(size=(samples, FEATURES, SIDE, SIDE))
        arrays = {
            "features": torch.from_numpy(noise + np.exp(-np.abs(distance))[:, None]).half(),
            "logits": torch.from_numpy(-distance + 2 * rng.normal(size=distance.shape)).float(),
            "passes": torch.from_numpy(
                1 / (1 + np.exp(distance[:, None] + rng.normal(size=(samples, MEMBERS, SIDE, SIDE))))
            ).half(),
            "y": torch.from_numpy((distance <= 0).astype(np.uint8)),
            "today": torch.from_numpy((distance <= -1).astype(np.uint8)),
        }
        save_file(arrays, folder / f"{split}-00000.safetensors")
    (folder / "cache.json").write_text(
        json.dumps({"key": "k", "samples": [samples, samples], "fires": [f"fire{k // 2}" for k in range(samples)]})
    )
    return folder


def small_space(folder: Path) -> Space:
    file = folder / "space.yaml"
    file.write_text(
        "head_lr: {float: [0.0001, 1.0], log: true}\n"
        "head_loss: {categorical: [rmsle, mse]}\n"
        "head_momentum: {float: [0.0, 0.9], step: 0.9, when: {head_loss: [rmsle]}}\n"
    )
    return read_space(file)


def make_job(store: TrialStore, space: Space, cache: Path, **changes: object) -> Job:
    values: dict[str, object] = {
        "store": store,
        "study": "small",
        "space": space,
        "trials": 4,
        "sampler": "random",
        "pruner": "none",
        "objective": "auroc",
        "cache": cache,
        "anchor_px": 3.0,
        "threshold": 0.5,
        "head": {"epochs": 10},
        "seed": 0,
        "session": 0,
    }
    return Job(**(values | changes))  # type: ignore[arg-type]

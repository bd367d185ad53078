"""One epoch of fitting the head, with validation: on cached tensors, against a DataLoader and a dilation per image."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.metrics import roc_auc_score
from tests.benchmarks.rows import show
from tests.benchmarks.timing import seconds
from tests.helpers.plain_fcer import plain_region
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fcer.training.batches import epoch_batches
from fcer.training.feature_shards import CachedSplit
from fcer.training.head import HeadTask, fit_epoch, make_head
from fcer.training.head_settings import HeadSettings
from fcer.training.validation_region import gather_region

SIZE, FEATURES, MEMBERS, ANCHOR = 128, 16, 3, 4.0
TRAINING, VALIDATION = 256, 128


def shards(folder: Path, name: str, samples: int) -> CachedSplit:
    """Blobs of fire, and features that know where the backbone errs."""
    rng = np.random.default_rng(samples)
    paths = []
    for start in range(0, samples, 32):
        rows, columns = np.mgrid[:SIZE, :SIZE]
        centre, radius = rng.uniform(30, 98, (2, 32, 1, 1)), rng.uniform(2, 14, (32, 1, 1))
        distance = np.hypot(rows - centre[0], columns - centre[1]) - radius
        noise = rng.normal(size=(32, SIZE, SIZE, FEATURES)).astype(np.float32)
        features = noise + np.exp(-np.abs(distance[..., None]) / np.arange(1, FEATURES + 1))
        logits = (-distance + 2 * rng.normal(size=distance.shape)).astype(np.float32)
        passes = 1 / (1 + np.exp(distance[:, None] + rng.normal(size=(32, MEMBERS, SIZE, SIZE))))
        arrays = {
            "features": torch.from_numpy(features).half().permute(0, 3, 1, 2).contiguous(),
            "logits": torch.from_numpy(logits),
            "passes": torch.from_numpy(passes).half(),
            "y": torch.from_numpy((distance <= 0).astype(np.uint8)),
            "today": torch.from_numpy((distance <= -2).astype(np.uint8)),
        }
        paths.append(folder / f"{name}-{start}.safetensors")
        save_file(arrays, paths[-1])
    return CachedSplit(paths)


class Plain:
    """The same epoch, written with what torch, scipy and scikit-learn offer at first sight."""

    def __init__(self, training: CachedSplit, validation: CachedSplit, settings: HeadSettings) -> None:
        self.training, self.validation = (TensorDataset(*self.tensors(split)) for split in (training, validation))
        self.head = nn.Conv2d(FEATURES, 1, 1)
        self.optimizer = torch.optim.SGD(self.head.parameters(), settings.lr, momentum=0.9, weight_decay=5e-4)

    @staticmethod
    def tensors(split: CachedSplit) -> list[torch.Tensor]:
        blocks = list(split.blocks())
        maps = torch.cat([block.features_BFP for block in blocks]).float().unflatten(2, (SIZE, SIZE))
        logits, y = (torch.cat([getattr(block, name) for block in blocks]) for name in ("logits_BP", "y_BP"))
        return [maps, *(t.unflatten(1, (SIZE, SIZE)) for t in (split.targets("std"), logits, y))]

    def loss(self, uncertainty: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        squares = (torch.log(uncertainty + 1) - torch.log(target + 1)) ** 2
        return torch.sqrt(squares.mean(dim=(1, 2)) + 1e-12).mean()

    def epoch(self, order: list[list[int]]) -> float:
        for features, target, _, _ in DataLoader(self.training, batch_sampler=order):
            self.optimizer.zero_grad()
            self.loss(torch.sigmoid(self.head(features))[:, 0], target).backward()
            self.optimizer.step()
        scores, errors = [], []
        with torch.no_grad():
            for features, _, logits, y in DataLoader(self.validation, batch_size=4):
                uncertainty = torch.sigmoid(self.head(features))[:, 0]
                for k, image in enumerate(y.numpy()):
                    region = plain_region(image > 0, ANCHOR)
                    scores.append(uncertainty[k].numpy()[region])
                    errors.append(((logits[k].numpy() > 0) != (image > 0))[region])
        return roc_auc_score(np.concatenate(errors), np.concatenate(scores))


def main() -> None:
    """Print one row."""
    settings = HeadSettings(epochs=100)
    with tempfile.TemporaryDirectory() as folder:
        training = shards(Path(folder), "training", TRAINING)
        validation = shards(Path(folder), "validation", VALIDATION)
        task = HeadTask.of(training, validation, gather_region(validation, ANCHOR), settings.target)
        head, optimizer = make_head(FEATURES, settings)
        plain = Plain(training, validation, settings)
        with torch.no_grad():
            plain.head.weight.copy_(head.layers[0].weight)
            plain.head.bias.copy_(head.layers[0].bias)
        order = np.random.default_rng((settings.seed, 1)).permutation(TRAINING).tolist()
        batches = [batch for (batch,) in epoch_batches(order, settings.batch_size)]
        task = task.prepared(settings.loss)
        ours = fit_epoch(task, settings, head, optimizer, 0)
        difference = abs(ours.score - plain.epoch(batches))
        # as where features do not fit into memory in single precision: converted batch by batch
        narrow = replace(task, training=training)
        ours_s, narrow_s, plain_s = seconds(
            lambda: fit_epoch(task, settings, head, optimizer, 0),
            lambda: fit_epoch(narrow, settings, head, optimizer, 0),
            lambda: plain.epoch(batches),
            repeats=3,
        )
        title = f"one epoch of the head, {TRAINING} + {VALIDATION} samples of {SIZE} px"
        show(title, ours_s, plain_s, 5, f"AUROC differs by {difference:.0e}", aim=10)
        show("the same beyond 1 GiB of features, mapped from disk", narrow_s, plain_s, 4, aim=6)

"""Caching for the head against four plain passes a sample, and one student against the ensemble it stands for."""

import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from tests.benchmarks.backbone_forward import plain_logits, take_turns
from tests.benchmarks.rows import show
from tests.benchmarks.timing import seconds

from fcer.core.disagreement import normalized_std
from fcer.data.augmentation import angle_positions, draw_view, turn
from fcer.data.dataset import Dataset, open_dataset
from fcer.data.folds import fair_folds
from fcer.data.samples import Samples, preprocess
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.backbones import AttendedDays, build
from fcer.models.checkpoints import CheckpointInfo, save_checkpoint
from fcer.models.inference import fast, predict_logits
from fcer.models.members import Member, fold_file, load_members
from fcer.models.student import HeadSpec, Student, UncertaintyHead
from fcer.training.feature_cache import cache_features
from fcer.training.teaching import Teaching

CROP, BATCH = 128, 4
FEATURES = (0, 1, 2, 3, 4, 38, 39)


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as folder:
        caching(Path(folder))
    inference()


def caching(root: Path) -> None:
    """A cold cache of a few fires of the dataset's size, both ways from files to features and targets."""
    synthesize(Recipe((2018, 2019, 2020), 1, (300, 400), (9, 9), 0), root / "fires")
    dataset = open_dataset(root / "fires", (2018, 2019, 2020), features=FEATURES, crop=CROP, cache=root, workers=1)
    members = make_members(root / "members", dataset)
    teaching = Teaching(dataset, members, members[0], crop=CROP)
    backbones = [load for member in members if isinstance(load := member.original()[0], AttendedDays)]
    rounds = iter(range(100))
    ours, theirs = seconds(
        lambda: cache_features(teaching, root / f"cache{next(rounds)}"),
        lambda: plainly(teaching, backbones),
        repeats=2,
    )
    cached = cache_features(teaching, root / "cache0")
    logits, target = plainly(teaching, backbones)
    blocks = list(cached.training.blocks()) + list(cached.validation.blocks())
    found = torch.cat([block.logits_BP for block in blocks]).numpy()
    difference = np.abs(found - logits).max() / np.abs(logits).max()
    targets = torch.cat([cached.training.targets("std"), cached.validation.targets("std")]).numpy()
    samples = len(found)
    note = f"logits differ by {difference:.0e} of their largest, targets by {np.abs(targets - target).max():.0e}"
    show("caching features and targets of one sample", ours / samples, theirs / samples, 1.75, note)


def make_members(folder: Path, dataset: Dataset) -> list[Member]:
    """Three of the paper's backbones with random weights."""
    for fold in fair_folds(2021):
        torch.manual_seed(fold.number)
        statistics = dataset.normalization(fold.train)
        info = CheckpointInfo(
            arch="utae_t5",
            channels=len(FEATURES),
            width=1.0,
            fold=fold.number,
            train_years=fold.train,
            val_years=fold.validation,
            test_years=fold.test,
            features=FEATURES,
            mean=statistics.mean,
            std=statistics.std,
            val_ap=None,
            dataset_fingerprint="f",
            code_version="0",
        )
        save_checkpoint(fold_file(folder, fold.number), build("utae_t5"), info)
    return load_members(folder, "utae_t5", fair_folds(2021), FEATURES)


def plainly(teaching: Teaching, backbones: list[AttendedDays]) -> tuple[np.ndarray, np.ndarray]:
    """Every sample read whole, each teacher asked in turn, then the student's backbone for its features."""
    logits, targets = [], []
    for samples in (teaching.training(), teaching.validation()):
        for start in range(0, len(samples), BATCH):
            raw = [read_whole(samples, k) for k in range(start, min(start + BATCH, len(samples)))]
            probabilities = []
            for member, backbone in zip(teaching.teachers, backbones, strict=True):
                probabilities.append(torch.sigmoid(plain_logits(backbone, shown(raw, member)))[:, 0])
            logits.append(plain_logits(backbones[0], shown(raw, teaching.backbone))[:, 0].flatten(1).numpy())
            targets.append(normalized_std(torch.stack(probabilities).numpy()).reshape(len(raw), -1))
    return np.concatenate(logits), np.concatenate(targets)


def shown(raw: list[np.ndarray], member: Member) -> torch.Tensor:
    return torch.from_numpy(np.stack([preprocess(days, range(23), FEATURES, member.normalization) for days in raw]))


def read_whole(samples: Samples, index: int) -> np.ndarray:
    """The sample's raw days by way of all 23 channels of the whole image."""
    fire, first = samples.locate(index)
    with h5py.File(fire.path, "r") as file:
        days = file["data"][first : first + samples.days + 1]
    if not samples.augment:
        corner = [round((size - CROP) / 2) for size in days.shape[-2:]]
        return days[:-1, :, corner[0] : corner[0] + CROP, corner[1] : corner[1] + CROP]
    active = days[:, 22] > 0
    view = draw_view(np.random.default_rng((samples.seed, samples.epoch, index)), active[-1], active[:-1], CROP)
    window = days[:-1, :, view.top : view.top + CROP, view.left : view.left + CROP]
    return turn(window, view, angle_positions(range(23)))


def inference() -> None:
    """What the paper's student saves."""
    torch.manual_seed(0)
    members = [fast(build("utae_t5").eval()) for _ in range(3)]
    student = Student(fast(build("utae_t5").eval()), UncertaintyHead(HeadSpec(16))).eval()
    x = torch.randn(BATCH, 5, 7, CROP, CROP)
    taken = take_turns(
        {
            "ensemble": lambda: torch.stack([predict_logits(member, x) for member in members]),
            "backbone": lambda: predict_logits(members[0], x),
            "student": lambda: student.predict(x).uncertainty_BHW,
        }
    )
    share, overhead = taken["student"] / taken["ensemble"], taken["student"] / taken["backbone"] - 1
    note = f"{share:.0%} of the ensemble's time, {overhead:+.1%} over the backbone alone"
    show(f"student against an ensemble of three, batch {BATCH}", taken["student"], taken["ensemble"], 2.5, note)

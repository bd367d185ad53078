"""A fire's files to its map on disk: by the student, and by the ensemble of three that it stands for."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from tests.benchmarks.distillation import FEATURES, make_members
from tests.benchmarks.rows import show
from tests.benchmarks.timing import seconds

from fcer.core.disagreement import normalized_std
from fcer.data.dataset import open_dataset
from fcer.data.fire import Fire
from fcer.data.samples import preprocess
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.deploy.cog import write_cog
from fcer.deploy.map_files import MapFiles
from fcer.models.inference import predict
from fcer.models.members import Member
from fcer.models.raw_days import needed_channels
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, load_student, save_student

YEARS = (2018, 2019, 2020)
THRESHOLD = 0.5


def main() -> None:
    """Print one row; the files are in the operating system's cache for both ways."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        synthesize(Recipe(YEARS, 1, (300, 400), (9, 9), 0), root / "fires")
        dataset = open_dataset(root / "fires", YEARS, features=FEATURES, crop=128, cache=root, workers=1)
        members = make_members(root / "members", dataset)
        files = student_files(root / "student", members[0])
        fire = dataset.catalog.fires[0]
        ours, theirs = seconds(
            lambda: files.write(fire, root / "student.tif"),
            lambda: by_ensemble(members, fire, needed_channels(files.loaded), root / "ensemble.tif"),
            repeats=3,
        )
        title = f"predict, one fire of {fire.height} x {fire.width} px, against an ensemble"
        show(title, ours, theirs, 2.2, f"{ours / theirs:.0%} of the ensemble's time")


def student_files(folder: Path, member: Member) -> MapFiles:
    """A student with random weights on the first member's backbone."""
    backbone, info = member.original()
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    fitted = {"loss": "rmsle", "target": "std", "frozen": True, "anchor_px": 4.0, "val_auroc": 0.5, "epoch": 1}
    origin = {"teachers": (), "dataset_fingerprint": "f", "code_version": "0", "key": "k"}
    save_student(folder, backbone, info, head, HeadInfo(head.spec.features, (), False, backbone="", **fitted, **origin))
    return MapFiles(load_student(folder), {"uri": str(folder)}, None, THRESHOLD, png=False, geojson=False)


def by_ensemble(members: list[Member], fire: Fire, channels: list[int], path: Path) -> None:
    """The same days, read once; every member's pass; the same file."""
    raw = fire.read(fire.latest_days(5), channels)
    probabilities = []
    for member in members:
        x = torch.from_numpy(preprocess(raw, channels, member.features, member.normalization))[None]
        probabilities.append(predict(member.backbone, x).logits_B1HW[0, 0].sigmoid().numpy())
    stack = np.stack(probabilities)
    mean = stack.mean(axis=0)
    bands = {"fire probability": mean, "uncertainty": normalized_std(stack), "fire": mean > THRESHOLD}
    write_cog(path, bands, place=fire.place, tags={})

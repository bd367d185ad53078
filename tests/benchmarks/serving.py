"""One request to a served student: a base64 .npy file against plain JSON, and one student against three members."""

import json
import os
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

import mlflow
import numpy as np
import torch
from tests.benchmarks.rows import show
from tests.benchmarks.timing import seconds
from tests.helpers.model_server import ModelServer

from fcer.core.disagreement import normalized_std
from fcer.data.samples import preprocess
from fcer.deploy.client import ask
from fcer.models.backbones import build
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.inference import fast, predict_logits
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, LoadedStudent, load_student, save_student
from fcer.runtime.npy_text import to_text
from fcer.runtime.parallel import cores
from fcer.tracking.student_model import log_student

SIZE = 128
FEATURES = (0, 1, 2, 3, 4, 38, 39)


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = make_student(Path(folder) / "student")
        days = np.random.default_rng(0).normal(size=(1, 5, len(needed_channels(loaded)), SIZE, SIZE))
        encodings(Path(folder), days.astype(np.float32))
        members(loaded, days.astype(np.float32))


def make_student(folder: Path) -> LoadedStudent:
    """The paper's, with random weights."""
    torch.manual_seed(0)
    backbone = build("utae_t5").eval()
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    years = {"train_years": (2018, 2019), "val_years": (2020,), "test_years": (2021,)}
    scaling = {"features": FEATURES, "mean": (0.0,) * 23, "std": (1.0,) * 23}
    origin = {"dataset_fingerprint": "f", "code_version": "0"}
    below = CheckpointInfo("utae_t5", len(FEATURES), 1.0, fold=0, val_ap=0.5, **years, **scaling, **origin)
    fitted = {"loss": "rmsle", "target": "std", "frozen": True, "anchor_px": 4.0, "val_auroc": 0.7, "epoch": 3}
    info = HeadInfo(head.spec.features, (), False, backbone="", teachers=("a", "b"), key="k", **fitted, **origin)
    save_student(folder, backbone, below, head, info)
    return load_student(folder)


def encodings(folder: Path, days: np.ndarray) -> None:
    """The same question to a real server, from the array to the maps."""
    store = f"sqlite:///{folder}/mlflow.db"
    os.environ["MLFLOW_TRACKING_URI"] = store
    client = mlflow.MlflowClient(store, store)
    run_id = client.create_run(client.create_experiment("served", (folder / "artifacts").as_uri())).info.run_id
    log_student(run_id, folder / "student", {})
    server = ModelServer("models:/fcer-student@champion", store, folder, threads=cores())
    try:
        server.wait()
        compact, plain = seconds(lambda: ask(server.url, days), lambda: ask_json(server.url, days))
    finally:
        server.kill()
    sizes = len(to_text(days)) / 1e6, len(json.dumps(days.tolist())) / 1e6
    note = f"a request of {sizes[0]:.1f} MB against {sizes[1]:.1f} MB"
    show(f"one request, {SIZE} px: base64 .npy against JSON", compact, plain, 3, note)


def ask_json(url: str, days: np.ndarray) -> list[np.ndarray]:
    """What anyone would write at first."""
    body = json.dumps({"inputs": days.tolist()}).encode()
    request = urllib.request.Request(f"{url}/invocations", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return [np.array(maps, np.float32) for maps in json.load(answer)["predictions"].values()]


def members(loaded: LoadedStudent, days: np.ndarray) -> None:
    """Raw days in, probability and uncertainty out: of the student, and of three members, each standardising itself."""
    backbones = [fast(build("utae_t5").eval()) for _ in range(3)]
    channels = needed_channels(loaded)

    def ensemble() -> tuple[np.ndarray, np.ndarray]:
        x = [[preprocess(sample, channels, FEATURES, loaded.normalization) for sample in days] for _ in backbones]
        logits = [
            predict_logits(member, torch.from_numpy(np.stack(own))) for member, own in zip(backbones, x, strict=True)
        ]
        probabilities = torch.stack(logits)[:, :, 0].sigmoid().numpy()
        return probabilities.mean(0), normalized_std(probabilities)

    ways: list[Callable[[], object]] = [lambda: predict_days(loaded, days), ensemble]
    student, three = seconds(*ways)
    show(f"one request's maps, {SIZE} px: student against three members", student, three, 2.5)

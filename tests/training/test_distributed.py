import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fcer.errors import ConfigError
from fcer.models import load_checkpoint
from fcer.models.device import choose_device
from fcer.training.distributed import World
from training_cases import FOLD

TESTS = Path(__file__).parents[1]

SCRIPT = """
import dataclasses, json, os, pathlib, sys
import torch
from fcer.data.samples import Samples
from fcer.training import train_member
from training_cases import ATTENTIVE, FOLD, tiny_data

root, path, log = map(pathlib.Path, sys.argv[1:])
read, raw = [], Samples.raw
def watched(self, index):
    read.append((self.augment, self.epoch, index))
    return raw(self, index)
Samples.raw = watched
settings = dataclasses.replace(ATTENTIVE, epochs=2, batch_size=5)
told = []
result = train_member(tiny_data(root), FOLD, settings, path, on_epoch=told.append)
again = train_member(tiny_data(root), FOLD, settings, path)
# a second member in the same processes
other = train_member(tiny_data(root), FOLD, dataclasses.replace(settings, seed=1), path.with_name("other.safetensors"))
rank = os.environ["RANK"]
(log / f"{rank}.json").write_text(json.dumps({
    "read": read, "told": len(told), "records": result.records, "val_ap": result.info.val_ap,
    "trained": [result.trained, again.trained, other.trained],
}))
"""


@pytest.fixture
def alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def test_one_process_is_a_world(alone):
    world = World.from_environment()
    assert world == World(0, 1, 0)
    assert world.is_main
    model = torch.nn.Linear(1, 1)
    assert world.wrap(model, torch.device("cpu")) is model
    assert (world.gather("part"), world.share("value")) == (["part"], "value")
    world.connect(torch.device("cpu"))
    assert not torch.distributed.is_initialized()


def test_torchrun_says_which_process_this_is(alone, monkeypatch):
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    world = World.from_environment()
    assert world == World(5, 8, 1)
    assert not world.is_main


def test_the_device_of_a_process(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match=r"^device: cuda was asked for, but torch finds no GPU here; choose"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto", 1) == choose_device("cuda", 1) == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match=r"^device: 3 processes or more for 2 GPUs; start torchrun with"):
        choose_device("auto", 2)


@pytest.mark.slow
def test_two_processes_share_the_work(tiny_fires, tmp_path):
    path = tmp_path / "fold0.safetensors"
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, script, tiny_fires, path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS / "helpers")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))

    n_training = len({index for _, epoch, index in (*first["read"], *second["read"]) if epoch})
    for epoch in (1, 2):
        mine, others = (
            [index for augment, at, index in log["read"] if augment and at == epoch] for log in (first, second)
        )
        # both members' passes: every sample once in each, by one process only
        assert sorted(mine + others) == sorted(2 * list(range(n_training)))
        assert mine
        assert others

    _, info = load_checkpoint(path)
    assert info.fold == FOLD.number
    assert first["val_ap"] == second["val_ap"] == info.val_ap
    # all agree on what happened, and one of them tells
    assert [r[:5] for r in first["records"]] == [r[:5] for r in second["records"]]
    assert (first["told"], second["told"]) == (2, 0)
    assert first["trained"] == second["trained"] == [True, False, True]

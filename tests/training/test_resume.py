import dataclasses
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fcer.errors import FcerWarning
from fcer.runtime.checksums import UNSEALED, seal
from fcer.training import MemberResult, train_member
from fcer.training.epochs import EpochRecord
from fcer.training.member import history_file
from fcer.training.resume import read_resume, resume_file, write_resume
from training_cases import ATTENTIVE, FOLD, QUICK, same_weights, untimed

SETTINGS = dataclasses.replace(ATTENTIVE, epochs=3, schedule="plateau", patience=2)
TESTS = Path(__file__).parents[1]

SCRIPT = """
import os, pathlib, signal, sys
import torch
from fcer.training import member
from fcer.training.learner import Learner
from test_resume import FOLD, KILLS, SETTINGS
from training_cases import tiny_data

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

for when, (kill, _) in KILLS.items():
    child = os.fork()  # torch is imported once
    if not child:
        exec(kill)
        path = pathlib.Path(sys.argv[2], when, "fold0.safetensors")
        member.train_member(tiny_data(pathlib.Path(sys.argv[1])), FOLD, SETTINGS, path)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

IN_AN_EPOCH = """
train_epoch, step, at = member._train_epoch, Learner.step, []
def watched(task, learner, epoch, bar):
    at[:] = [epoch, 0]
    return train_epoch(task, learner, epoch, bar)
def dying(*arguments):
    at[1] += 1
    return die() if at == [2, 2] else step(*arguments)  # one step of the second epoch is done
member._train_epoch, Learner.step = watched, dying
"""

IN_A_WRITE = """
save, writes = torch.save, []
def half(content, path):
    writes.append(path)
    if len(writes) == 2:
        path.write_bytes(b"half")
        die()
    save(content, path)
torch.save = half
"""

KILLS = {
    "in its first epoch": ("Learner.step = die", 0),
    "in its second epoch": (IN_AN_EPOCH, 1),
    "while it writes the second state": (IN_A_WRITE, 1),
    "before it writes the checkpoint": ("member.save_checkpoint = die", 3),
}
"""How the training is killed, and the epochs that must then be safe."""


@pytest.fixture(scope="module")
def undisturbed(tiny, tmp_path_factory: pytest.TempPathFactory) -> MemberResult:
    return train_member(tiny, FOLD, SETTINGS, tmp_path_factory.mktemp("undisturbed") / "fold0.safetensors")


@pytest.fixture(scope="module")
def killed(tiny_fires: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each way to be killed, with what was left behind."""
    folder = tmp_path_factory.mktemp("killed")
    paths = os.pathsep.join(str(TESTS / folder) for folder in ("helpers", "training"))
    call = [sys.executable, "-c", SCRIPT, tiny_fires, folder]
    done = subprocess.run(call, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(KILLS), done.stderr
    return folder


@pytest.mark.parametrize("when", KILLS)
def test_killed_and_started_again_it_ends_with_the_same_weights(tiny, undisturbed, killed: Path, when: str):
    safe = KILLS[when][1]
    path = killed / when / "fold0.safetensors"
    assert not path.exists()
    assert resume_file(path).exists() == (safe > 0)

    told: list[EpochRecord] = []
    states: list[int] = []

    def on_epoch(record: EpochRecord) -> None:
        told.append(record)
        states.append(resume_file(path).stat().st_mtime_ns)

    result = train_member(tiny, FOLD, SETTINGS, path, on_epoch=on_epoch)
    assert same_weights(path, undisturbed.path)
    assert untimed(result.records) == untimed(undisturbed.records)
    assert result.info == undisturbed.info
    # epochs that were safe are told again but not trained again: only the others wrote a state
    assert told == result.records
    assert len(set(states[safe:])) == len(told) - safe
    assert len(set(states[:safe])) <= 1
    assert {p.name for p in path.parent.iterdir()} == {path.name, history_file(path).name}


def test_epochs_are_told_once_they_are_safe(tiny, tmp_path):
    path = tmp_path / "fold0.safetensors"
    told = []

    def stop(record: EpochRecord) -> None:
        told.append(record.epoch)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_member(tiny, FOLD, QUICK, path, on_epoch=stop)
    assert told == [1, 2]
    result = train_member(tiny, FOLD, QUICK, path, on_epoch=stop)
    assert told == [1, 2, 1, 2, 3]
    assert [record.epoch for record in result.records] == [1, 2, 3]


def interrupted(tiny, path: Path, settings) -> None:
    def stop(record: EpochRecord) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_member(tiny, FOLD, settings, path, on_epoch=stop)


def test_a_state_of_other_settings_is_not_used(tiny, tmp_path):
    path, plain = tmp_path / "fold0.safetensors", tmp_path / "plain.safetensors"
    interrupted(tiny, path, dataclasses.replace(QUICK, lr=1e-4))
    with pytest.warns(FcerWarning, match=r"fold0\.resume: it is of a training with other settings or other data and"):
        train_member(tiny, FOLD, QUICK, path)
    train_member(tiny, FOLD, QUICK, plain)
    assert same_weights(path, plain)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code from a file was run')",)


@pytest.mark.parametrize(
    "content", [b"", b"no torch file", pickle.dumps(Bomb(), 2), pickle.dumps({"key": "k"}, 2), pickle.dumps([1], 2)]
)
def test_a_state_that_cannot_be_read_is_not_used(tmp_path, content):
    file = tmp_path / "fold0.resume"
    file.write_bytes(content)
    with pytest.warns(FcerWarning, match=r"fold0\.resume: it cannot be read and is not used; training starts at"):
        assert read_resume(file, "k") is None


def test_a_state_cut_short_or_with_code_in_it_is_not_used(tmp_path):
    file = tmp_path / "fold0.resume"
    write_resume(file, "k", [EpochRecord(1, 0.5, 0.5, 0.5, 1e-3, 1.0)], {}, {"w": torch.arange(1000.0)})
    whole = file.read_bytes()
    resume = read_resume(file, "k")
    assert resume is not None
    assert resume.records == [EpochRecord(1, 0.5, 0.5, 0.5, 1e-3, 1.0)]
    assert torch.equal(resume.best["w"], torch.arange(1000.0))
    for cut in (len(whole) // 2, len(whole) - 10):
        file.write_bytes(whole[:cut])
        with pytest.warns(FcerWarning, match="cannot be read"):
            assert read_resume(file, "k") is None
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 16  # a weight, which torch itself reads without a word
    file.write_bytes(flipped)
    with pytest.warns(FcerWarning, match="cannot be read"):
        assert read_resume(file, "k") is None
    torch.save({"key": "k", "records": [], "learner": Bomb(), "best": {}}, file)
    with file.open("ab") as stream:
        stream.write(UNSEALED.encode())
    seal(file)
    with pytest.warns(FcerWarning, match="cannot be read"):
        assert read_resume(file, "k") is None


@pytest.mark.filterwarnings("error")
def test_no_state_or_a_silent_process(tmp_path):
    assert read_resume(tmp_path / "none.resume", "k") is None
    (tmp_path / "fold0.resume").write_bytes(b"")
    assert read_resume(tmp_path / "fold0.resume", "k", warn=False) is None

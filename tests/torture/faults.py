"""Faults around a command: others like it at once, a full disk, flipped bits, a lost worker, a restarted database."""

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dask_cluster import HandMadeCluster
from postgres_server import has_postgres, postgres_server

from .cases import draw
from .corpus import Outcome
from .scenes import difference, finish, inputs, reference, seconds, start

__all__ = ["FAULTS", "run_fault"]

_PAGE = 4096
Fault = Callable[[np.random.Generator, Path], tuple[str, str]]
"""From random numbers and a folder: what was done, and why it did not hold (empty: it held)."""


def together(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """The same command several times at once, in a folder where nothing has run before."""
    scene, count = str(draw(rng, ["evaluate", "evaluate", "distill", "synthesize"])), int(rng.integers(2, 5))
    reference(scene, folder)
    inputs(folder)
    what = f"{count} x {scene}"
    ended = [command.wait() for command in [start(scene, folder) for _ in range(count)]]
    for code, said in ended:
        if code != 0:
            return what, f"exit code {code}: {_last(said)}"
    return what, difference(scene, folder)


def _last(said: str) -> str:
    return " ".join([line for line in said.splitlines() if line.startswith("fcer: ")][-1:] or said.splitlines()[-1:])[
        :200
    ]


def _sentence(code: int | None, said: str) -> str:
    """Why an end is none that a fault excuses: it is done, or it failed with one sentence."""
    told = [line for line in said.splitlines() if line.startswith("fcer: ") and not line.startswith("fcer: warning")]
    if code == 0:
        return ""
    if code not in (1, 2) or len(told) != 1 or "should not happen" in said or "Traceback" in said:
        return f"exit code {code}: {_last(said)}"
    return ""


def largest_file(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """No file may grow beyond some bytes."""
    scene = str(draw(rng, ["evaluate", "distill"]))
    reference(scene, folder)
    inputs(folder)
    most = int(10 ** rng.uniform(2, 6))
    what = f"{scene} with files of {most} bytes at most"
    code, said = start(scene, folder, limits={resource.RLIMIT_FSIZE: most}).wait()
    return what, _sentence(code, said) or finish(scene, folder) or difference(scene, folder)


def full_disk(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """A file system of a few MB that fills up, and has room again."""
    scene = str(draw(rng, ["evaluate", "distill"]))
    reference(scene, folder)
    inputs(folder)
    needed = sum(-path.stat().st_size // _PAGE * -_PAGE + _PAGE for path in folder.rglob("*"))
    size = needed + int(10 ** rng.uniform(3, 6.8))
    what = f"{scene} with {size - needed} bytes left"
    small = folder.parent / "small"
    with _mounted(small, size):
        shutil.copytree(folder, small, dirs_exist_ok=True)
        code, said = start(scene, small).wait()
        if failed := _sentence(code, said):
            return what, failed
        subprocess.run(["mount", "-o", "remount,size=1g", str(small)], check=True)
        return what, finish(scene, small) or difference(scene, small)


@contextmanager
def _mounted(place: Path, size: int) -> Iterator[None]:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


ARTEFACTS: dict[str, tuple[str, ...]] = {
    "work/cache/surveys/*.json": ("work/checkpoints", "work/cache/features", "work/students", "work/study"),
    "work/checkpoints/*/*.safetensors": ("work/cache/features", "work/students", "work/study"),
    "work/checkpoints/*/*.history.json": ("work/cache/features", "work/students", "work/study"),
    "work/cache/features/*/*.safetensors": ("work/students", "work/study"),
    "work/cache/features/*/cache.json": ("work/students", "work/study"),
    "work/students/*/head.safetensors": ("work/study",),
    "work/students/*/backbone.safetensors": ("work/study",),
    "work/students/*/feature_fits.safetensors": ("work/study",),
    "work/students/*/history.json": ("work/study",),
    "work/students/*/calibration.*": ("work/study", "mlflow.db"),
    "work/students/*/validation.json": ("work/study", "mlflow.db"),
    "work/calibrations/*.npz": ("work/study", "work/students/*/calibration.json"),
    "work/calibrations/*.json": ("work/study", "work/students/*/calibration.json"),
    "work/study/predictions_*.npz": ("work/study/*.csv", "work/study/evaluation.json", "work/study/report"),
    "work/study/predictions_*.json": ("work/study/*.csv", "work/study/evaluation.json", "work/study/report"),
    "work/study/*.csv": ("work/study/report",),
    "work/study/evaluation.json": ("work/study/report",),
    "work/study/tests.json": ("work/study/report",),
    "work/runs/*/journal.jsonl": ("work/study/report",),
}
"""What a study leaves and trusts later, and what to remove so that it is read again."""


def flipped_bit(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """One bit of what an earlier command wrote."""
    pattern = str(draw(rng, list(ARTEFACTS)))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(reference("main", folder), folder)
    found = sorted(folder.glob(pattern))
    path = found[int(rng.integers(len(found)))]
    state = path.stat()
    content = bytearray(path.read_bytes())
    place = int(rng.integers(len(content)))
    content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # a disk that forgets tells nobody
    for removed in ARTEFACTS[pattern]:
        for one in folder.glob(removed):
            shutil.rmtree(one) if one.is_dir() else one.unlink()
    if path.name == "journal.jsonl":  # one that says that all is done is never read again
        flipped = path.read_bytes()
        path.write_bytes(flipped[: flipped.rstrip(b"\n").rfind(b"\n") + 1])
    what = f"{path.relative_to(folder)}, byte {place} of {len(content)}"
    code, said = start("main", folder).wait()
    if path.name in said or (len(path.parent.name) > 12 and path.parent.name in said):
        return what, _sentence(code, said)
    if code:
        return what, f"refused without its name: {_last(said)}"
    if path.exists() and path.read_bytes() == content:
        return what, "not found: nobody said a word, and it is still there"
    return what, difference("main", folder)


def lost_worker(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """One of a Dask cluster's two workers is killed."""
    return _cluster(rng, folder, "worker")


def lost_scheduler(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """The scheduler of a Dask cluster is killed; the study goes on without it."""
    return _cluster(rng, folder, "scheduler")


def _cluster(rng: np.random.Generator, folder: Path, lost: str) -> tuple[str, str]:
    reference("main", folder)
    inputs(folder)
    moment = float(rng.uniform(0, seconds("main", folder)))
    what = f"{lost} lost after {moment:.1f} s"
    with HandMadeCluster(folder) as cluster:
        for _ in range(2):
            cluster.add_worker()
        command = start("main", folder, "--cluster", cluster.address)
        time.sleep(moment)
        cluster.kill_scheduler() if lost == "scheduler" else cluster.workers[0].kill()
        code, said = command.wait()
    if lost == "worker" and code != 0:
        return what, f"exit code {code}: {_last(said)}"
    return what, _sentence(code, said) or finish("main", folder) or difference("main", folder)


def restarted_database(rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """PostgreSQL is stopped at once and started again under a search."""
    inputs(folder)
    moment = float(rng.uniform(0.2, 1)) * seconds("search", folder)
    what = f"restarted after {moment:.1f} s"
    with postgres_server() as url:
        os.environ["TRIALS"] = str(url)
        try:
            command = start("search", folder, "--storage", url)
            time.sleep(moment)
            url.restart()
            code, said = command.wait()
            return what, _sentence(code, said) or finish("search", folder, "--storage", url) or difference(
                "search", folder
            )
        finally:
            del os.environ["TRIALS"]


FAULTS: dict[str, Fault] = {
    "together": together,
    "largest file": largest_file,
    "full disk": full_disk,
    "flipped bit": flipped_bit,
    "lost worker": lost_worker,
    "lost scheduler": lost_scheduler,
    "PostgreSQL": restarted_database,
}


def needs(name: str) -> str:
    """What is missing for a fault, if anything."""
    if name == "full disk" and os.geteuid() != 0:
        return "root is needed to mount a small file system"
    if name == "PostgreSQL" and not has_postgres():
        return "PostgreSQL is not installed: apt-get install postgresql"
    return ""


def run_fault(name: str, seed: int, number: int, folder: Path) -> Outcome:
    """One of them."""
    rng = np.random.default_rng([seed, 100 + list(FAULTS).index(name), number])
    what, failure = FAULTS[name](rng, folder)
    return Outcome(number, what, 1 if failure else 0, failure)

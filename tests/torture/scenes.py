"""Commands that faults happen to, their inputs, and what an undisturbed one leaves: the same is left after faults."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import mlflow
import numpy as np
import optuna

from detection_cases import burning, written
from fcer.data.synthetic.fires import synthesize
from study_settings import RECIPE, TINY

from .maps import arrays
from .warm import Started

__all__ = ["SCENES", "difference", "finish", "inputs", "reference", "seconds", "start"]

_TINY = ("--members", "2", "--arch", "unet_t1", "--width", "0.0625", "--crop", "32", "--member-epochs", "1")
_HEAD = ("--member-batch-size", "4", "--head-epochs", "2", "--year", "2021", "--data", "fires", "--workers", "1")
_FIRES = ("--years", "2018", "2019", "--fires-per-year", "6", "--workers", "2")
_SEARCH = ("--study", "small", "--trials", "3", "--storage", "sqlite:///trials.db", "--head-patience", "2")
SCENES: dict[str, tuple[Sequence[str], str]] = {
    "synthesize": (("synthesize", "--out", "made", *_FIRES), "made"),
    "ingest": (("ingest", "--detections", "detections.csv", "--out", "made", "--workers", "1"), "made"),
    "evaluate": (
        ("evaluate", "--predictions", "predictions_2018.npz", "--out", "results", "--bootstrap", "50"),
        "results",
    ),
    "distill": (("distill", *_TINY, *_HEAD), "work/students"),
    # with density: it alone reads feature_fits.safetensors
    "main": (("main", *_TINY, *_HEAD, "--bootstrap", "5", "--methods", *TINY["methods"], "density"), "work/study"),
    "search": (("search", *_SEARCH, *_TINY, *_HEAD), ""),
}
"""By name: the command, and the folder whose files count; a search's trials are counted instead."""
_MEASURED = ("costs.csv", ".html", "predictions_2021.json", "history.json")
"""Hold times, of the clock or of files, which differ."""


def start(name: str, folder: Path, *more: str, limits: Mapping[int, int] | None = None) -> Started:
    """Begin with a command."""
    environment = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db", "OMP_NUM_THREADS": "1"}
    return Started((*SCENES[name][0], *more), folder, environment, limits)


def finish(name: str, folder: Path, *more: str) -> str:
    """Run to the end; what it said where that was no success."""
    code, said = start(name, folder, *more).wait()
    last = [line for line in said.splitlines() if line.startswith("fcer: ")][-1:] or said.splitlines()[-1:]
    return "" if code == 0 else f"started again: exit code {code}: {' '.join(last)[:200]}"


def inputs(folder: Path) -> Path:
    """An empty folder with what every command reads."""
    made = folder.parent / "inputs"
    if not made.exists():
        synthesize(RECIPE, made / "fires", workers=1)
        np.savez(made / "predictions_2018.npz", **arrays(np.random.default_rng(0)))
        written(made, burning(days=4, per_day=12))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made, folder)
    return folder


def reference(name: str, folder: Path) -> Path:
    """The folder of the same command undisturbed; how long it took stands in it."""
    made = folder.parent / f"reference-{name}"
    if not (made / "seconds").exists():
        begun = time.monotonic()
        if failed := finish(name, inputs(made)):
            raise SystemExit(f"{name} undisturbed: {failed}: mend that first")
        (made / "seconds").write_text(str(time.monotonic() - begun))
    return made


def seconds(name: str, folder: Path) -> float:
    """How long the command took undisturbed."""
    return float((reference(name, folder) / "seconds").read_text())


def difference(name: str, folder: Path) -> str:
    """How what a command left differs from an undisturbed one; unfinished files that nobody will finish count."""
    expected, output = reference(name, folder), SCENES[name][1]
    if name == "search":
        return _trials(folder)
    ours, theirs = (
        {
            str(path.relative_to(root)): path
            for path in root.rglob("*")
            if path.is_file() and not path.name.endswith(_MEASURED)
        }
        for root in (folder / output, expected / output)
    )
    if odd := sorted(ours.keys() ^ theirs.keys()):
        return f"{odd[0]} is there in one of them"
    other = [each for each in sorted(ours) if ours[each].read_bytes() != theirs[each].read_bytes()]
    if other:
        return f"{other[0]} differs"
    return _registered(folder, expected) if name in ("main", "distill") else ""


def _registered(folder: Path, expected: Path) -> str:
    """Students are registered once, and no run is left open."""
    counts = []
    for place in (folder, expected):
        client = mlflow.MlflowClient(f"sqlite:///{place}/mlflow.db", f"sqlite:///{place}/mlflow.db")
        counts.append(len(client.search_model_versions("name = 'fcer-student'")))
        runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)
        if [run for run in runs if run.info.status == "RUNNING"]:
            return "a run is left open"
    return "" if counts[0] == counts[1] else f"{counts[0]} versions are registered instead of {counts[1]}"


def _trials(folder: Path) -> str:
    """As many trials as were asked for, each complete once in Optuna and in MLflow."""
    trials = optuna.load_study(
        study_name="small", storage=os.environ.get("TRIALS", f"sqlite:///{folder}/trials.db")
    ).trials
    done = {trial.number for trial in trials if trial.state.name in ("COMPLETE", "PRUNED")}
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)
    logged = [r.info.run_name for r in runs if r.data.tags.get("fcer.trial_state") in ("complete", "pruned")]
    if len(done) != 3:
        return f"{len(done)} trials instead of 3"
    if sorted(logged) != sorted(f"trial {number}" for number in done):
        return f"MLflow has {sorted(logged)}, Optuna {sorted(done)}"
    return ""

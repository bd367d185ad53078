"""What is checked before a run begins, and the run of a command that leaves none unless `mlflow run` began it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fcer.commands import COMMANDS
from fcer.config import Config, Resolved
from fcer.errors import ConfigError
from fcer.pipeline.run_log import NO_LOG, RunLog

__all__ = ["LAUNCHED", "check_inputs", "launched_run"]

LAUNCHED = "MLFLOW_RUN_ID"
"""By this `mlflow run` tells which run it has begun for us."""
_INPUTS = {
    "data": "no such folder; give --data a folder that holds YEAR/fire_X.hdf5",
    "source": "no such folder; give --source a folder that holds YEAR/fire_X/DATE.tif",
    "checkpoints": "no such folder; give --checkpoints a folder of members, or leave it out to train them",
    "predictions": "no such file; give predictions_YEAR.npz or an HDF5 file that exists",
    "results": "no finished evaluation there; run fcer evaluate --out {}",
    "ablation": "no finished evaluation there; run fcer evaluate --out {}",
    "input": "no such file or folder; give --input a fire, a folder of fires, or detections",
    "detections": "no such file; give --detections a file as NASA FIRMS offers it",
    "space": "no such file; give --space a YAML file such as experiments/search_head.yaml",
    "maps": "no such file or folder; give --maps what fcer predict wrote",
    "against": "no such file or folder; give --against detections, or a dataset folder",
}
"""Settings that name what has to be there, each with the remedy."""


@contextmanager
def launched_run(name: str, resolved: Resolved) -> Iterator[RunLog]:
    """The run that `mlflow run` has begun for a command which leaves none by itself: it has no result to keep."""
    if LAUNCHED not in os.environ:
        check_inputs(name, resolved.config)
        yield NO_LOG
        return
    from fcer.commands.tracked import command_run  # imports mlflow, which takes longer than most of what these do

    with command_run(name, resolved) as run:
        yield run


def check_inputs(name: str, config: Config) -> None:
    """What is named is there, and the device too: better said now than after hours, and before a run begins."""
    for key in (key for key in _INPUTS if key in COMMANDS[name].options):
        if key == "checkpoints" and name == "train":
            continue  # it writes its members there
        value = getattr(config, key)
        for path in value if isinstance(value, tuple) else (value,):
            if path is not None and not Path(path).exists():
                raise ConfigError(f"{path}: {_INPUTS[key].replace('{}', str(path))}")
    if "device" in COMMANDS[name].options and config.device == "cuda":
        from fcer.models.device import choose_device  # imports torch

        choose_device(config.device)

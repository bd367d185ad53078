"""The commands of `fcer`, one module each: what it is for, the options it takes, and `run`.

This table is all that `fcer --help` and the checks of mlproject need; a command's module, and whatever heavy
package it works with, is imported when the command runs.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fcer.config import Config, Resolved
from fcer.config.groups import DETECTIONS, PLACES, STEPS, SYNTHETIC, recorded
from fcer.runtime.cluster import connected

__all__ = ["COMMANDS", "Argument", "Command", "recorded_of"]


class Argument(NamedTuple):
    """What a command is given besides options."""

    name: str
    meaning: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """One command: `fcer NAME`, and the entry point NAME of mlproject."""

    name: str
    does: str
    example: str
    options: tuple[str, ...]
    """The keys of the configuration that it uses, each an option of the command line."""
    demo: bool = False
    """Whether it takes the demo's settings where neither data nor a configuration is named."""
    answers: bool = False
    """Whether what it prints is what it was asked for, which `--quiet` leaves."""
    stays: bool = False
    """Whether it works until it is stopped, and so is no entry point of mlproject."""
    argument: Argument | None = None
    """What stands after its name; such a command serves housekeeping and is no entry point of mlproject."""

    def run(self, resolved: Resolved, argument: str | Path | None = None) -> None:
        """Do the work."""
        given = () if self.argument is None else (argument,)
        with connected(resolved.config.cluster if "cluster" in self.options else None):
            import_module(f"fcer.commands.{self.name}").run(resolved, *given)


_TRUTH = ("confidence", "satellites", "day")
"""What of detections decides what burnt."""

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "synthesize",
            "make synthetic fires in the dataset's own layout",
            "fcer synthesize --out data/synthetic --years 2018 2019 --fires-per-year 4",
            ("out", *SYNTHETIC, "geotiff", *PLACES),
        ),
        Command(
            "convert",
            "turn the GeoTIFF release into one HDF5 file a fire",
            "fcer convert --source WildfireSpreadTS --out data/wsts",
            ("source", "out", *SYNTHETIC, *PLACES),
        ),
        Command(
            "ingest",
            "turn VIIRS detections into fires in the dataset's own layout",
            "fcer ingest --detections viirs_snpp.csv viirs_noaa20.csv --out data/viirs",
            (*DETECTIONS, "out", *SYNTHETIC, "work", "workers"),
        ),
        Command(
            "inspect",
            "say what a dataset holds and what in it is broken",
            "fcer inspect --data data/wsts --crop 128",
            ("data", "features", "crop", *SYNTHETIC, "work", "workers"),
            demo=True,
            answers=True,
        ),
        Command(
            "train",
            "train the members of a test year's ensemble",
            "fcer train --data data/wsts --year 2021 --arch utae_t5 --checkpoints checkpoints/utae_t5",
            STEPS["train"],
            demo=True,
        ),
        Command(
            "distill",
            "distil a test year's ensemble into a single-pass student",
            "fcer distill --data data/wsts --checkpoints checkpoints/utae_t5 --year 2021",
            STEPS["distill"],
            demo=True,
        ),
        Command(
            "search",
            "search the head's settings with Optuna, by validation AUROC at the anchor",
            "fcer search --study head --storage sqlite:///studies.db --trials 50 --workers 2",
            (
                *("study", "storage", "trials", "space", "sampler", "pruner", "objective", "dashboard"),
                *(key for key in STEPS["distill"] if key != "cluster"),
            ),
            demo=True,
        ),
        Command(
            "evaluate",
            "score uncertainty near the fire (FCER): sweep, segmentation, statistical tests",
            "fcer evaluate --predictions predictions_2020.npz predictions_2021.npz --out results",
            ("predictions", "reference", "out", *STEPS["evaluate"]),
            demo=True,
        ),
        Command(
            "report",
            "join evaluated years into the paper's table, tests and figures, on one page",
            "fcer report --results results/2020 results/2021 --out report",
            ("results", "runs", "experiment", "ablation", "paper", "out", "reference", *STEPS["evaluate"]),
            demo=True,
        ),
        Command(
            "main",
            "run the whole study: members, students, evaluation, report",
            "fcer main --config experiments/paper.yaml --data data/wsts --checkpoints pretrained_weights --year all",
            ("reference", "out", "ablation", *STEPS["evaluate"]),
            demo=True,
        ),
        Command(
            "predict",
            "turn a fire's latest days into a GeoTIFF of fire probability and uncertainty",
            "fcer predict --model models:/fcer-student@champion --input data/wsts/2021/fire_X.hdf5 --out tomorrow.tif",
            (
                "model",
                "input",
                "out",
                "threshold",
                "png",
                "geojson",
                "gis",
                "assets",
                "device",
                "precision",
                *DETECTIONS[1:],
                *SYNTHETIC,
                "work",
                "workers",
            ),
            demo=True,
        ),
        Command(
            "calibrate",
            "make a student's probabilities mean what they say, and give it zones with a guarantee",
            "fcer calibrate --model models:/fcer-student@champion --data data/wsts --miss 0.1 0.2",
            ("model", "miss", "online", "maps", "against", *STEPS["train"]),
            demo=True,
        ),
        Command(
            "promote",
            "make a run's student the champion, unless it is worse than the present one",
            "fcer promote --run 0123456789abcdef0123456789abcdef",
            ("run", "work"),
        ),
        Command(
            "verify",
            "score forecasts once the next day is seen, keep the record, and raise an alarm where it is bad",
            "fcer verify --maps work/predictions --against viirs_snpp.csv viirs_noaa20.csv",
            ("maps", "against", "out", *_TRUTH, "model", "threshold", "crop", "device", *SYNTHETIC, "work", "workers"),
            demo=True,
        ),
        Command(
            "rehearse",
            "replay a dataset day by day: predict, wait for the next day, verify",
            "fcer rehearse --data data/wsts --model models:/fcer-student@champion --lose-channel NDVI",
            (
                *("data", "model", "swap_model", "lose_channel", "out", "threshold", "crop", "device"),
                *DETECTIONS,
                *SYNTHETIC,
                *("work", "workers"),
            ),
            demo=True,
        ),
        Command(
            "serve",
            "answer requests with the champion's maps, and take the next champion without a restart",
            "fcer serve --model models:/fcer-student@champion --port 8080",
            ("model", "host", "port", "poll", "precision", "work"),
            stays=True,
        ),
        Command(
            "export",
            "write a student as an ONNX file, which needs no torch to run",
            "fcer export --model models:/fcer-student@champion --onnx student.onnx",
            ("model", "onnx", "input", "work"),
        ),
        Command(
            "cache",
            "list what is kept to save time, or remove it",
            "fcer cache list",
            ("work",),
            answers=True,
            argument=Argument("action", "list or clear", ("list", "clear")),
        ),
        Command(
            "log",
            "send to MLflow what could not be sent while its server was away",
            "fcer log work/runs",
            ("work",),
            argument=Argument("folder", "the folder that the command named, or all of WORK/runs"),
        ),
        Command(
            "completion",
            "print a script that lets a shell complete commands and options",
            'eval "$(fcer completion bash)"',
            (),
            answers=True,
            argument=Argument("shell", "the shell that is to read it", ("bash", "zsh", "fish")),
        ),
    )
}


def recorded_of(config: Config, command: str) -> dict[str, Any]:
    """The settings that a command uses, as its run records them."""
    return recorded(config, COMMANDS[command].options)

"""The commands of `fcer`, one module each: what it is for, the options it takes, and `run`.

This table is all that `fcer --help` and the checks of mlproject need; a command's module, and whatever heavy
package it works with, is imported when the command runs.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fcer.config import Config
from fcer.resolve import Resolved

__all__ = ["COMMANDS", "Command", "settings_of"]


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

    def run(self, resolved: Resolved) -> None:
        """Do the work."""
        import_module(f"fcer.commands.{self.name}").run(resolved)


_SYNTHETIC = ("years", "fires_per_year", "image_size", "fire_days", "seed")

_EXPERIMENT = ("data", "checkpoints", "year", "arch", "width", "features", "crop")
_TRAINING = (
    "member_epochs",
    "member_patience",
    "member_lr",
    "member_weight_decay",
    "member_batch_size",
    "member_schedule",
    "pos_weight",
    "clip_norm",
    "device",
)

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "synthesize",
            "make synthetic fires in the dataset's own layout",
            "fcer synthesize --out data/synthetic --years 2018 2019 --fires-per-year 4",
            ("out", *_SYNTHETIC, "geotiff", "work", "workers"),
        ),
        Command(
            "convert",
            "turn the GeoTIFF release into one HDF5 file a fire",
            "fcer convert --source WildfireSpreadTS --out data/wsts",
            ("source", "out", *_SYNTHETIC, "work", "workers"),
        ),
        Command(
            "inspect",
            "say what a dataset holds and what in it is broken",
            "fcer inspect --data data/wsts --crop 128",
            ("data", "features", "crop", *_SYNTHETIC, "work", "workers"),
            demo=True,
        ),
        Command(
            "train",
            "train the members of a test year's ensemble",
            "fcer train --data data/wsts --year 2021 --arch utae_t5 --checkpoints checkpoints/utae_t5",
            (*_EXPERIMENT, "fold", *_TRAINING, *_SYNTHETIC, "work", "workers"),
            demo=True,
        ),
        Command(
            "evaluate",
            "score uncertainty near the fire (FCER): sweep, segmentation, statistical tests",
            "fcer evaluate --predictions predictions_2020.npz predictions_2021.npz --out results",
            (
                "predictions",
                "reference",
                "anchor",
                "radii",
                "bootstrap",
                "out",
                *_EXPERIMENT,
                "normalization",
                "select_by",
                *_TRAINING,
                *_SYNTHETIC,
                "work",
                "workers",
            ),
            demo=True,
        ),
    )
}


def settings_of(config: Config, command: str) -> dict[str, Any]:
    """The settings that a command uses, as a run records them; where to work and with how many is not one."""
    return {key: getattr(config, key) for key in COMMANDS[command].options if key not in ("work", "workers")}

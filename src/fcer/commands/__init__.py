"""The commands of `fcer`, one module each: what it is for, the options it takes, and `run`.

This table is all that `fcer --help` and the checks of mlproject need; a command's module, and whatever heavy
package it works with, is imported when the command runs.
"""

from dataclasses import dataclass
from importlib import import_module

from fcer.config import Resolved

__all__ = ["COMMANDS", "Command"]


@dataclass(frozen=True)
class Command:
    """One command: `fcer NAME`, and the entry point NAME of mlproject."""

    name: str
    does: str
    example: str
    options: tuple[str, ...]
    """The keys of the configuration that it uses, each an option of the command line."""
    project: bool = True
    """Whether MLflow runs it too: a command that only prints settings or help needs no run."""

    def run(self, resolved: Resolved) -> None:
        """Do the work."""
        import_module(f"fcer.commands.{self.name}").run(resolved)


_SYNTHETIC = ("years", "fires_per_year", "image_size", "fire_days", "seed")

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
        ),
    )
}

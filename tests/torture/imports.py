"""The server that commands are forked from imports this: commands have run once, and all that they import is there."""

import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import dask.distributed  # noqa: F401
import optuna.samplers  # noqa: F401

from fcer.cli import main

from .sound import make_sound

with (
    tempfile.TemporaryDirectory(prefix="torture-warm-") as temporary,
    Path(os.devnull).open("w") as nowhere,
    redirect_stdout(nowhere),
    redirect_stderr(nowhere),
):
    folder = Path(temporary)
    make_sound(folder)
    out = ("--work", str(folder / "work"), "--workers", "1", "--out")
    fire = str(folder / "fires" / "2018" / "fire_a.hdf5")
    for command in (
        ("report", "--results", str(folder / "results"), *out, str(folder / "report")),
        ("predict", "--model", str(folder / "calibrated"), "--input", fire, *out, str(folder / "map.tif")),
        ("ingest", "--detections", str(folder / "detections.csv"), *out, str(folder / "ingested")),
        ("convert", "--source", str(folder / "fires"), *out, str(folder / "converted")),
        ("inspect", "--data", str(folder / "converted"), "--crop", "32"),
        ("log", str(folder / "journal")),
    ):
        main(command)

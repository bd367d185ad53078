"""Sound inputs, from which every malformed one is made."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

from fcer.cli import main
from fcer.data.synthetic.fires import Recipe, synthesize
from mlflow_stores import fresh_store
from student_cases import write_student

from .maps import arrays

__all__ = ["make_sound"]


def make_sound(folder: Path) -> None:
    """Fires in both forms, a results folder, the journal of a command that was killed, and a student."""
    os.environ["MLFLOW_TRACKING_URI"] = fresh_store(folder)
    recipe = Recipe(years=(2018,), fires_per_year=1, image_size=(40, 40), fire_days=(7, 7), seed=3)
    synthesize(recipe, folder / "made", geotiff=True, workers=1)
    for made in (folder / "made" / "2018").iterdir():
        (folder / "fires" / "2018").mkdir(parents=True, exist_ok=True)
        made.rename(folder / "fires" / "2018" / f"fire_a{made.suffix}")
    np.savez(folder / "predictions_2018.npz", **arrays(np.random.default_rng(0)))
    options = ("--bootstrap", "5", "--radii", "0", "2", "--work", str(folder / "work"))
    out = ("--out", str(folder / "results"))
    if main(["evaluate", "--predictions", str(folder / "predictions_2018.npz"), *out, *options]) != 0:
        raise SystemExit("the sound input is not sound: correct that first")
    (journal,) = (folder / "work" / "runs").glob("*/journal.jsonl")
    entries = [line for line in journal.read_text().splitlines() if '"op"' in line]
    (folder / "journal").mkdir()
    first = json.dumps({"process": None, "uri": ""})
    (folder / "journal" / "journal.jsonl").write_text("\n".join([first, *entries]) + "\n")
    write_student(folder / "student", "k")
    shutil.rmtree(folder / "made")

"""Sound inputs, from which every malformed one is made."""

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import rasterio

from detection_cases import FIRST, burning, written
from fcer.cli import main
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.calibration_files import save_calibration
from forecast_cases import calibration_of, place_at, write_forecast
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
    kept = folder / "journal" / journal.parent.name  # runs below others name them by their folder
    kept.mkdir(parents=True)
    first = json.dumps({"process": None, "uri": ""})
    (kept / "journal.jsonl").write_text("\n".join([first, *entries]) + "\n")
    write_student(folder / "student", "k")
    save_calibration(write_student(folder / "calibrated", "k"), calibration_of("k"))
    shutil.rmtree(folder / "made")
    _make_daily(folder)


def _make_daily(folder: Path) -> None:
    """Detections, a raster of elevation below them, and a forecast of their last day with the record of it."""
    frame = burning(days=4, per_day=12)
    written(folder, frame)
    place = {"crs": "EPSG:4326", "transform": rasterio.Affine(0.02, 0, -121.0, 0, -0.02, 41.0)}
    size = {"width": 100, "height": 100, "count": 1, "dtype": "float32"}
    with rasterio.open(folder / "elevation.tif", "w", driver="GTiff", **place, **size) as image:
        image.write(np.random.default_rng(0).random((1, 100, 100), np.float32))
    (folder / "maps").mkdir()
    write_forecast(folder / "forecast.tif", FIRST + timedelta(days=3), place=place_at(755_000.0, 4_440_000.0))
    shutil.copy(folder / "forecast.tif", folder / "maps")
    given = ("--maps", str(folder / "maps"), "--against", str(folder / "detections.csv"))
    if main(["verify", *given, "--out", str(folder / "record"), "--work", str(folder / "work")]) != 0:
        raise SystemExit("the sound forecast is not: mend that first")
